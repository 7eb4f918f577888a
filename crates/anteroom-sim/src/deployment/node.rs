//! A node: the production room, its clock, and its conversation with the store.
//!
//! It asks the room what the gateway would ask, in the same order: whoever is inside and not due
//! passes without the room.

use anteroom_core::allocation::CounterKey;
use anteroom_core::decision::Place;
use anteroom_core::id::VisitorId;
use anteroom_core::room::check_in::Return;
use anteroom_core::room::syncing::SYNC_PERIOD;
use anteroom_core::room::{Capacity, CheckIn, Room, RoomIdentity, Verdict, Visit};
use anteroom_core::rules::Rules;
use anteroom_core::sync::SyncRequest;
use anteroom_core::ticket::{Standing, Ticket};
use anteroom_core::time::{Millis, Span};

use crate::judge::idle::Uses;
use crate::run::slab::Key;

/// A process that meets visitors.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) room: Room,
    pub(crate) rules: Rules,
    pub(crate) data_center: u32,
    /// Rises with every start; what was meant for a former life is dropped.
    pub(crate) life: u32,
    pub(crate) is_alive: bool,
    /// It has said goodbye and speaks to its store no more.
    pub(crate) is_draining: bool,
    /// What it told its store last: for a bug that is planted, and otherwise empty.
    pub(crate) last_told: Option<Box<SyncRequest>>,
    /// It stands still until then.
    pub(crate) paused_until: Millis,
    /// No message passes between it and its store until then.
    pub(crate) cut_until: Millis,
    pub(crate) clock: Clock,
    pub(crate) talk: Talk,
    /// For the judge.
    pub(crate) uses: Uses,
}

/// A clock that may be wrong, and never goes back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    error_ms: i64,
    /// How much faster than true time it runs, in parts per million, and since when.
    drifts_ppm: i64,
    drifts_since: Millis,
    newest: Millis,
}

impl Clock {
    pub(crate) fn read(&mut self, now: Millis) -> Millis {
        let drifting_for = i64::try_from(now.since(self.drifts_since).0).unwrap_or(i64::MAX);
        let drifted = drifting_for.saturating_mul(self.drifts_ppm) / 1_000_000;
        let shown = Millis(now.0.saturating_add_signed(self.error_ms + drifted));
        self.newest = self.newest.max(shown);
        self.newest
    }

    pub(crate) fn set_error(&mut self, by_ms: i64, drifts_ppm: i32, now: Millis) {
        self.error_ms = by_ms;
        self.drifts_ppm = i64::from(drifts_ppm);
        self.drifts_since = now;
    }

    /// A new life reads the clock as it is.
    pub(crate) fn restart(&mut self) {
        self.newest = Millis::ZERO;
    }
}

/// The conversation with the store: one round at a time.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// Number of the newest round; never used twice, over all lives.
    pub(crate) round: u32,
    pub(crate) is_under_way: bool,
    /// The last round failed: nobody waits for the next one.
    pub(crate) is_failing: bool,
    /// Somebody needs another round as soon as this one is over.
    pub(crate) is_wanted: bool,
    pub(crate) sent_at: Millis,
    /// Who waits for the round under way.
    pub(crate) asking: Vec<Key>,
    /// Who waits for the one after it.
    pub(crate) asking_next: Vec<Key>,
}

/// A request of a browser, as far as it matters here.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) role: Role,
    /// The record of its sender.
    pub(crate) owner: Key,
    pub(crate) node: u32,
    /// The life of the node that it reached.
    pub(crate) life: u32,
    pub(crate) arrived_at: Millis,
    pub(crate) ticket: Option<Ticket>,
    /// Its id if it is taken for somebody new.
    pub(crate) fresh: VisitorId,
    pub(crate) may_ask_parent: bool,
    pub(crate) asked: u8,
    /// A number that it waits for or has taken.
    pub(crate) number: Option<(CounterKey, u64)>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// A page, or the question of somebody who waits.
    Page,
    /// What a page loads beside itself.
    Part,
    /// A page in a second tab.
    Tab,
    /// An old ticket that is sent again.
    Replay,
}

/// What a node says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Pass,
    Renewed(Ticket),
    Admit(Ticket),
    Queue(Option<Ticket>, Place),
    AskParent,
    TakeNumber(CounterKey),
}

/// As whom it met the sender.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MetAs {
    Inside,
    Waiting,
    New,
}

impl Node {
    pub(crate) fn new(identity: RoomIdentity, data_center: u32, rules: Rules) -> Self {
        Self {
            room: Room::new(identity, rules, Capacity::default()),
            rules,
            data_center,
            life: 0,
            is_alive: true,
            is_draining: false,
            last_told: None,
            paused_until: Millis::ZERO,
            cut_until: Millis::ZERO,
            clock: Clock::default(),
            talk: Talk::default(),
            uses: Uses::new(SYNC_PERIOD),
        }
    }

    /// Starts a new life, which knows nothing of the last one.
    pub(crate) fn start(&mut self, identity: RoomIdentity) {
        self.room = Room::new(identity, self.rules, Capacity::default());
        self.is_alive = true;
        self.is_draining = false;
        self.clock.restart();
        self.talk.is_failing = false;
    }

    /// Ends this life. Who waited for an answer gets none.
    pub(crate) fn stop(&mut self) {
        self.is_alive = false;
        self.is_draining = false;
        self.life += 1;
        let round = self.talk.round.wrapping_add(1);
        self.talk = Talk {
            round,
            ..Talk::default()
        };
    }

    /// Decides about a request at `now` by this node's clock.
    pub(crate) fn ask(&mut self, request: &Request, now: Millis) -> (Said, MetAs) {
        let is_navigation = request.role != Role::Part;
        let accepted = request.ticket.filter(|ticket| ticket.accepted_at.is_some());
        if let Some(ticket) = accepted {
            if passes_at_once(&self.room, &ticket, is_navigation, now) {
                return (Said::Pass, MetAs::Inside);
            }
            let visit = Return {
                ticket,
                is_navigation,
                may_ask_parent: request.may_ask_parent,
            };
            match self.room.handle_check_in(visit, now) {
                CheckIn::Renewed(renewed) => return (Said::Renewed(renewed), MetAs::Inside),
                CheckIn::AskParent => return (Said::AskParent, MetAs::Inside),
                // It may have ended while its check-in waited for the parent.
                CheckIn::Pass if self.is_inside(&ticket, now) => {
                    return (Said::Pass, MetAs::Inside);
                }
                CheckIn::Pass | CheckIn::Over => {}
            }
        }
        let (visit, met_as) = self.visit(request, now);
        let verdict = match request.number {
            Some(number) => self.room.handle_number(visit, number, now),
            None => self.room.handle_visit(visit, now),
        };
        let said = match verdict {
            Verdict::Admit(ticket) => Said::Admit(ticket),
            Verdict::Queue(ticket, place) => Said::Queue(ticket, place),
            Verdict::AskParent => Said::AskParent,
            Verdict::TakeNumber(key) => Said::TakeNumber(key),
        };
        (said, met_as)
    }

    fn visit(&self, request: &Request, now: Millis) -> (Visit, MetAs) {
        let waiting = request.ticket.filter(|ticket| {
            self.standing(ticket, now) == Standing::Waiting && !self.room.is_revoked(ticket.visitor)
        });
        let visit = Visit {
            visitor: waiting.map_or(request.fresh, |ticket| ticket.visitor),
            ticket: waiting,
            may_ask_parent: request.may_ask_parent,
            // Those who wait ask by script.
            gets_page: waiting.is_none(),
        };
        let met_as = if waiting.is_some() {
            MetAs::Waiting
        } else {
            MetAs::New
        };
        (visit, met_as)
    }

    fn is_inside(&self, ticket: &Ticket, now: Millis) -> bool {
        matches!(self.standing(ticket, now), Standing::Inside { .. })
    }

    fn standing(&self, ticket: &Ticket, now: Millis) -> Standing {
        let closed_through = self.room.outlook().closed_through;
        ticket.standing(now, closed_through, self.room.rules())
    }

    /// How long after its last request the next round is due.
    pub(crate) fn pause(&self) -> Span {
        self.room.sync_period()
    }
}

/// Whether the gateway would let this ticket pass without asking the room.
fn passes_at_once(room: &Room, ticket: &Ticket, is_navigation: bool, now: Millis) -> bool {
    let rules = room.rules();
    let outlook = room.outlook();
    let standing = ticket.standing(now, outlook.closed_through, rules);
    let Some(seat) = ticket.seats.of(room.data_center()) else {
        return false;
    };
    let may_be_renewed = rules.session_renewal || ticket.is_provisional;
    let is_due = may_be_renewed && ticket.is_check_in_due(now, rules.seat_grid(), is_navigation);
    matches!(standing, Standing::Inside { .. })
        && room.has_heard_from_parent()
        && seat.epoch == outlook.epoch
        && !is_due
        && !ticket.is_from_the_future(now)
        && !room.is_revoked(ticket.visitor)
}
