//! One request on its way through a room: the steps in their order, without waiting for any of
//! them.
//!
//! The caller performs what a [`Step`] asks for and goes on. Production awaits round trips in
//! between, the simulator plans events; what is decided, and when, is the same.

use super::check_in::Return;
use super::{CheckIn, Room, Verdict, Visit};
use crate::allocation::CounterKey;
use crate::decision::QueuePosition;
use crate::id::VisitorId;
use crate::ticket::{Standing, Ticket};
use crate::time::Timestamp;

/// What a request is, as far as a room cares.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalKind {
    /// Its ticket, authentic; the one that is worth most if there are several.
    pub ticket: Option<Ticket>,
    /// The id of its sender, if it is taken for somebody new.
    pub fresh: VisitorId,
    /// Whether a page is asked for, and not something that a page loads.
    pub is_navigation: bool,
    /// Whether somebody who waits is answered with a page.
    pub gets_page: bool,
    /// What its sender is after if it is not inside.
    pub intent: Intent,
}

/// What the sender of a request is after if it is not inside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Intent {
    /// To be admitted.
    Enter,
    /// To know where it would stand if it is new. With a waiting ticket it may be admitted.
    Look,
    /// To get a position in the queue: it has to wait, whatever is free.
    Wait,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Over: on to the origin.
    Pass {
        /// The visitor's ticket from now on.
        ticket: Ticket,
        /// Until when it is inside.
        seat_ends_at: Timestamp,
        /// Whether the ticket is a new one, to be handed out.
        is_new_ticket: bool,
        /// Whether the node lacks what it takes to extend seats: a sync should begin, for which
        /// this visitor does not wait.
        wants_sync: bool,
    },
    /// Over: let in, with this ticket.
    Admit(Ticket),
    /// Over: wait, with this ticket (none where there is no queue).
    Queue(Option<Ticket>, QueuePosition),
    /// Over, for a look: it would be let in.
    MayCome,
    /// It is not inside. Make sure of what operators say, then go on.
    NotInside,
    /// Wait for the answer to a request to the parent that begins now, then go on.
    AskParent,
    /// Take the next number of this counter, then go on with [`RequestFlow::handle_number`].
    TakeNumber(CounterKey),
}

/// As whom a room meets the sender of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VisitorState {
    /// With a ticket that was accepted and has not ended.
    Inside,
    /// With a waiting ticket.
    Waiting,
    /// As somebody new.
    New,
}

/// A request and how far it has come.
#[derive(Clone, Debug)]
pub struct RequestFlow {
    arriving: ArrivalKind,
    may_ask_parent: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    CheckIn(Ticket),
    /// Not inside; the ticket is a waiting one.
    Arrived(Option<Ticket>),
    Visiting(Visit),
}

impl RequestFlow {
    /// A request that has just come.
    #[must_use]
    pub fn new(arriving: ArrivalKind) -> Self {
        let accepted = arriving
            .ticket
            .filter(|ticket| ticket.accepted_at.is_some());
        Self {
            arriving,
            may_ask_parent: true,
            stage: match accepted {
                Some(ticket) => Stage::CheckIn(ticket),
                None => Stage::Arrived(arriving.ticket),
            },
        }
    }

    /// Says whether waiting for the parent (once more) is worth anything. At first it is.
    pub fn set_may_ask_parent(&mut self, may_ask_parent: bool) {
        self.may_ask_parent = may_ask_parent;
        if let Stage::Visiting(visit) = &mut self.stage {
            visit.may_ask_parent = may_ask_parent;
        }
    }

    /// Whether somebody new only wants to know where it would stand.
    #[must_use]
    pub fn is_look(&self) -> bool {
        self.arriving.intent == Intent::Look && self.met_as() == VisitorState::New
    }

    /// As whom the sender is met, as far as that is known.
    #[must_use]
    pub fn met_as(&self) -> VisitorState {
        match self.stage {
            Stage::CheckIn(_) => VisitorState::Inside,
            Stage::Arrived(Some(_)) => VisitorState::Waiting,
            Stage::Arrived(None) => VisitorState::New,
            Stage::Visiting(visit) if visit.ticket.is_some() => VisitorState::Waiting,
            Stage::Visiting(_) => VisitorState::New,
        }
    }

    /// Decides as far as it can be decided at `now`.
    pub fn decide(&mut self, room: &mut Room, now: Timestamp) -> Step {
        let step = match self.stage {
            Stage::CheckIn(ticket) => self.check_in(ticket, room, now),
            Stage::Arrived(ticket) => {
                self.begin_visit(ticket, room, now);
                Step::NotInside
            }
            Stage::Visiting(visit) => self.visit(visit, room, now),
        };
        room.assert_sound();
        step
    }

    /// Goes on after a number was taken; `None`: the counter did not answer.
    pub fn handle_number(
        &mut self,
        number: (CounterKey, Option<u64>),
        room: &mut Room,
        now: Timestamp,
    ) -> Step {
        self.set_may_ask_parent(false);
        match self.stage {
            Stage::Visiting(visit) => {
                let step = step_of(room.handle_number(visit, number, now));
                room.assert_sound();
                step
            }
            Stage::CheckIn(_) | Stage::Arrived(_) => self.decide(room, now),
        }
    }

    fn check_in(&mut self, ticket: Ticket, room: &mut Room, now: Timestamp) -> Step {
        let visit = Return {
            ticket,
            is_navigation: self.arriving.is_navigation,
            may_ask_parent: self.may_ask_parent,
        };
        let (ticket, is_new_ticket) = match room.handle_check_in(visit, now) {
            CheckIn::AskParent => return Step::AskParent,
            CheckIn::Pass => (Some(ticket), false),
            CheckIn::Renewed(renewed) => (Some(renewed), true),
            CheckIn::Over => (None, false),
        };
        let closed_through = room.snapshot.closed_through;
        let inside = ticket.and_then(|ticket| {
            match ticket.standing(now, closed_through, &room.rules) {
                Standing::Inside { ends_at } => Some((ticket, ends_at)),
                // It ended while its check-in waited for the parent.
                Standing::Waiting | Standing::Over => None,
            }
        });
        match inside {
            Some((ticket, seat_ends_at)) => Step::Pass {
                ticket,
                seat_ends_at,
                is_new_ticket,
                wants_sync: room.demand.lacks_credit(),
            },
            None => {
                self.begin_visit(None, room, now);
                Step::NotInside
            }
        }
    }

    fn begin_visit(&mut self, ticket: Option<Ticket>, room: &Room, now: Timestamp) {
        let closed_through = room.snapshot.closed_through;
        let is_good = |ticket: &Ticket| {
            let standing = ticket.standing(now, closed_through, &room.rules);
            // A visitor who was told to leave begins anew, as somebody else.
            standing == Standing::Waiting && !room.is_revoked(ticket.visitor)
        };
        let waiting = ticket.filter(is_good);
        self.may_ask_parent = true;
        self.stage = Stage::Visiting(Visit {
            visitor: waiting.map_or(self.arriving.fresh, |ticket| ticket.visitor),
            ticket: waiting,
            may_ask_parent: true,
            gets_page: self.arriving.gets_page,
        });
    }

    fn visit(&self, visit: Visit, room: &mut Room, now: Timestamp) -> Step {
        if self.is_look() {
            return room.handle_look(visit, now).map_or(Step::MayCome, step_of);
        }
        step_of(match self.arriving.intent {
            Intent::Wait => room.handle_held(visit, now),
            Intent::Enter | Intent::Look => room.handle_visit(visit, now),
        })
    }
}

fn step_of(verdict: Verdict) -> Step {
    match verdict {
        Verdict::Admit(ticket) => Step::Admit(ticket),
        Verdict::Queue(ticket, place) => Step::Queue(ticket, place),
        Verdict::AskParent => Step::AskParent,
        Verdict::TakeNumber(key) => Step::TakeNumber(key),
    }
}
