//! Who comes, and what does each of them do? Visitors as they are, not as a node sees them.
//!
//! What is decided about them is not known here, nor whether it was right.

mod arrivals;

use anteroom_room::id::VisitorId;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::Timestamp;

use crate::judge::Watched;
use crate::rng::{Draw, VisitorRng};
use crate::run::slab::{Key, Slab};
use crate::scenario::model::{Behaviour, DataCenterPlan, RoomPlan};
pub(crate) use arrivals::Stream;

/// Everybody who is there, and who will come.
#[derive(Debug)]
pub(crate) struct Crowd {
    pub(crate) behaviour: Behaviour,
    pub(crate) streams: Vec<Stream>,
    pub(crate) visitors: Slab<Visitor>,
    pub(crate) copies: Slab<TicketCopy>,
    /// Data centers' shares, summed up.
    shares: Vec<f64>,
}

/// Where a visitor stands, by its own lights.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// On its way to its first answer.
    ArrivalKind,
    /// In line.
    Waiting,
    /// Looking at pages.
    Inside,
    /// Left; kept only because a copy of its ticket is still about.
    Gone,
}

/// One visitor.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) lot: VisitorRng,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) watched: Watched,
    /// When it first asked to come in.
    pub(crate) arrived_at: Timestamp,
    /// When its patience in the line ends.
    pub(crate) leaves_at: Timestamp,
    /// When it stops asking without a word; never for most.
    pub(crate) stops_at: Timestamp,
    pub(crate) pages_left: u32,
    /// Index of its data center.
    pub(crate) data_center: u32,
    /// Index of the node that its last request met.
    pub(crate) node: u32,
    pub(crate) phase: Phase,
    /// Copies of its tickets that will still be sent.
    pub(crate) copies: u8,
    pub(crate) keeps_cookies: bool,
    pub(crate) opens_tab: bool,
    pub(crate) is_no_show: bool,
    pub(crate) logs_out: bool,
    pub(crate) replays: bool,
}

/// A copy of a ticket, to be sent later.
#[derive(Debug)]
pub(crate) struct TicketCopy {
    pub(crate) ticket: Ticket,
    pub(crate) owner: Key,
    pub(crate) node: u32,
    pub(crate) use_as: CopyUse,
}

/// What becomes of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CopyUse {
    /// A second tab asks for a page.
    Tab,
    /// It is sent again long after.
    Replay,
    /// The session is ended with it, once more.
    LogOut,
}

impl Crowd {
    pub(crate) fn new(room: &RoomPlan, data_centers: &[DataCenterPlan], seed: u64) -> Self {
        let numbered = room.arrivals.iter().zip(0u32..);
        let mut sum = 0.0;
        let shares = data_centers.iter().map(|plan| {
            sum += plan.share;
            sum
        });
        Self {
            behaviour: room.behaviour,
            streams: numbered.map(|(a, n)| Stream::new(a, seed, n)).collect(),
            visitors: Slab::default(),
            copies: Slab::default(),
            shares: shares.collect(),
        }
    }

    /// A newcomer of this stream, of whom only its node is not chosen yet.
    pub(crate) fn newcomer(&mut self, stream: usize, now: Timestamp) -> Visitor {
        let stream = &mut self.streams[stream];
        let rng = stream.rng();
        let lot = VisitorRng::new(rng.word());
        let draw = rng.unit();
        let data_center = stream.data_center.unwrap_or_else(|| {
            let target = draw * self.shares.last().copied().unwrap_or(0.0);
            self.shares.partition_point(|sum| *sum <= target)
        });
        let data_center = data_center.min(self.shares.len().saturating_sub(1));
        self.draw_nature(lot, u32::try_from(data_center).unwrap_or(0), now)
    }

    /// Everything that a visitor will be like is drawn when it comes: what happens to it changes
    /// nothing of that.
    fn draw_nature(&self, mut lot: VisitorRng, data_center: u32, now: Timestamp) -> Visitor {
        let behaviour = &self.behaviour;
        let patience = behaviour.patience.map(|mean| lot.exponential_span(mean));
        Visitor {
            ticket: None,
            watched: Watched::default(),
            arrived_at: now,
            leaves_at: patience.map_or(Timestamp::NEVER, |span| now + span),
            stops_at: Timestamp::NEVER,
            pages_left: lot.geometric(behaviour.pages),
            data_center,
            node: 0,
            phase: Phase::ArrivalKind,
            copies: 0,
            keeps_cookies: !lot.chance(behaviour.without_cookies),
            opens_tab: lot.chance(behaviour.second_tab),
            is_no_show: lot.chance(behaviour.no_shows),
            logs_out: lot.chance(behaviour.log_out),
            replays: lot.chance(behaviour.replays),
            lot,
        }
    }
}

impl Visitor {
    /// An id that nobody had before, for the case that it is taken for somebody new.
    pub(crate) fn fresh_id(&mut self) -> VisitorId {
        fresh_id(&mut self.lot)
    }

    /// Takes over a ticket from an answer, unless what it has is worth more.
    pub(crate) fn adopt(&mut self, ticket: Ticket, now: Timestamp) {
        let is_better = self.ticket.is_none_or(|own| {
            let own_end = own.accepted_at.and_then(|_| own.seats.ends_at());
            let end = ticket.accepted_at.and_then(|_| ticket.seats.ends_at());
            if own.visitor == ticket.visitor {
                (end, ticket.last_check_in_at) >= (own_end, own.last_check_in_at)
            } else {
                own_end.is_some_and(|end| end <= now) || own_end.is_none()
            }
        });
        if is_better {
            self.ticket = Some(ticket);
        }
    }
}

fn fresh_id(lot: &mut VisitorRng) -> VisitorId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&lot.word().to_le_bytes());
    id[8..].copy_from_slice(&lot.word().to_le_bytes());
    VisitorId(id)
}
