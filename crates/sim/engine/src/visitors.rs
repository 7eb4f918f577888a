//! Simulated visitors: when they come and what each of them does.
//!
//! Decisions about them are made and checked elsewhere.

mod arrivals;

use anteroom_room::id::VisitorId;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};

use crate::checkers::Watched;
use crate::measure::Announcement;
use crate::rng::{Draw, VisitorRng};
use crate::run::slab::{Key, Slab};
use crate::scenario::model::{Behaviour, DataCenterPlan, RoomPlan};
pub(crate) use arrivals::Stream;

/// Interval between the requests of a page that a browser throttles.
pub(crate) const THROTTLED_TO: DurationMs = DurationMs::from_secs(60);

/// Visitors who are present, and the streams of those who will come.
#[derive(Debug)]
pub(crate) struct Population {
    pub(crate) behaviour: Behaviour,
    pub(crate) streams: Vec<Stream>,
    pub(crate) visitors: Slab<Visitor>,
    pub(crate) copies: Slab<TicketCopy>,
    /// Cumulated shares of the data centers.
    shares: Vec<f64>,
}

/// State of a visitor, as the visitor sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// Waits for its first response.
    Arriving,
    /// Waits in the queue.
    Waiting,
    /// Has a turn, which is held for it.
    Holding,
    /// Looking at pages.
    Inside,
    /// Left; kept only because a copy of its ticket will still be sent.
    Gone,
}

/// Simulated visitor.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) rng: VisitorRng,
    pub(crate) ticket: Option<Ticket>,
    /// Waits that responses announced to it.
    pub(crate) announced: Vec<Announcement>,
    pub(crate) watched: Watched,
    /// Time of its first request.
    pub(crate) arrived_at: Timestamp,
    /// Time at which it gives up waiting.
    pub(crate) leaves_at: Timestamp,
    /// Time at which a no-show sends no more requests; [`Timestamp::NEVER`] for most visitors.
    pub(crate) stops_at: Timestamp,
    pub(crate) pages_left: u32,
    /// Index of its data center.
    pub(crate) data_center: u32,
    /// Index of the node that received its last request.
    pub(crate) node: u32,
    pub(crate) phase: Phase,
    /// Number of copies of its tickets that will still be sent.
    pub(crate) copies: u8,
    pub(crate) keeps_cookies: bool,
    pub(crate) opens_tab: bool,
    pub(crate) is_no_show: bool,
    pub(crate) is_away: bool,
    pub(crate) is_throttled: bool,
    /// Whether it is a program with an interval of its own, and no page that asks again at once.
    pub(crate) keeps_interval: bool,
    /// Whether its next request is for more time for its turn.
    pub(crate) wants_extension: bool,
    pub(crate) logs_out: bool,
    pub(crate) replays: bool,
}

/// Copy of a ticket that is sent later.
#[derive(Debug)]
pub(crate) struct TicketCopy {
    pub(crate) ticket: Ticket,
    pub(crate) owner: Key,
    pub(crate) node: u32,
    pub(crate) use_as: CopyUse,
}

/// Use of a copied ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CopyUse {
    /// A second tab requests a page.
    Tab,
    /// The visitor sends it again much later.
    Replay,
    /// The visitor logs out with it a second time.
    LogOut,
}

impl Population {
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

    /// Draws a new visitor of this stream; the caller chooses its node.
    pub(crate) fn newcomer(&mut self, stream: usize, now: Timestamp) -> Visitor {
        let stream = &mut self.streams[stream];
        let rng = stream.rng();
        let visitor_rng = VisitorRng::new(rng.word());
        let draw = rng.unit();
        let data_center = stream.data_center.unwrap_or_else(|| {
            let target = draw * self.shares.last().copied().unwrap_or(0.0);
            self.shares.partition_point(|sum| *sum <= target)
        });
        let data_center = data_center.min(self.shares.len().saturating_sub(1));
        self.draw_behaviour(visitor_rng, u32::try_from(data_center).unwrap_or(0), now)
    }

    /// Draws the whole behaviour of a visitor when it comes, so that nothing that happens to it
    /// later changes the draws.
    fn draw_behaviour(&self, mut rng: VisitorRng, data_center: u32, now: Timestamp) -> Visitor {
        let behaviour = &self.behaviour;
        let patience = behaviour.patience.map(|mean| rng.exponential_span(mean));
        Visitor {
            ticket: None,
            announced: Vec::new(),
            watched: Watched::default(),
            arrived_at: now,
            leaves_at: patience.map_or(Timestamp::NEVER, |span| now + span),
            stops_at: Timestamp::NEVER,
            pages_left: rng.geometric(behaviour.pages),
            data_center,
            node: 0,
            phase: Phase::Arriving,
            copies: 0,
            keeps_cookies: !rng.chance(behaviour.without_cookies),
            opens_tab: rng.chance(behaviour.second_tab),
            is_no_show: rng.chance(behaviour.no_shows),
            logs_out: rng.chance(behaviour.log_out),
            replays: rng.chance(behaviour.replays),
            // No draw, so that the others stay as they are.
            is_away: behaviour.away > 0.0 && rng.chance(behaviour.away),
            is_throttled: behaviour.throttled > 0.0 && rng.chance(behaviour.throttled),
            keeps_interval: behaviour.throttled > 0.0 && rng.chance(0.25),
            wants_extension: false,
            rng,
        }
    }
}

impl Visitor {
    /// Returns a new id, for the case that a node takes the visitor for a new one.
    pub(crate) fn fresh_id(&mut self) -> VisitorId {
        fresh_id(&mut self.rng)
    }

    /// Takes a ticket over from a response, unless the visitor's own ticket is better.
    pub(crate) fn adopt(&mut self, ticket: Ticket, now: Timestamp) {
        if self.would_adopt(&ticket, now) {
            self.ticket = Some(ticket);
        }
    }

    /// Whether a ticket in a response is as good as the visitor's own one.
    pub(crate) fn would_adopt(&self, ticket: &Ticket, now: Timestamp) -> bool {
        self.ticket.is_none_or(|own| {
            let own_end = own.accepted_at.and_then(|_| own.seats.ends_at());
            let end = ticket.accepted_at.and_then(|_| ticket.seats.ends_at());
            if own.visitor == ticket.visitor {
                (end, ticket.last_check_in_at) >= (own_end, own.last_check_in_at)
            } else {
                own_end.is_some_and(|end| end <= now) || own_end.is_none()
            }
        })
    }
}

fn fresh_id(rng: &mut VisitorRng) -> VisitorId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&rng.word().to_le_bytes());
    id[8..].copy_from_slice(&rng.word().to_le_bytes());
    VisitorId(id)
}
