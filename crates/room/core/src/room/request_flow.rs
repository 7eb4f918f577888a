//! Flow of one request through a room: the steps in their order, without waiting for any of them.
//!
//! The caller performs what a [`Step`] demands and goes on. Production awaits round trips in
//! between, the simulator schedules events; the decisions and their times are the same.

use super::check_in::CheckInRequest;
use super::{CheckIn, Room, TurnWait, Verdict, Visit};
use crate::allocation::CounterKey;
use crate::id::VisitorId;
use crate::queue_position::{Loss, QueuePosition};
use crate::ticket::{Standing, Ticket};
use crate::time::{DurationMs, Timestamp};

/// Properties of a request that a room needs.
#[derive(Clone, Copy, Debug)]
pub struct VisitorArrival {
    /// Ticket of the visitor, authentic; the one with the best standing if there are several.
    pub ticket: Option<Ticket>,
    /// Identifier of the visitor if it counts as new.
    pub fresh: VisitorId,
    /// Whether the request is for a page, and not for a resource that a page loads.
    pub is_navigation: bool,
    /// Whether a waiting visitor gets a page.
    pub gets_page: bool,
    /// Intent of the visitor if it is not active.
    pub intent: Intent,
}

/// Intent of a visitor who is not active.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Intent {
    /// Admission.
    Enter,
    /// Information for a new visitor: its position. A waiting ticket may be admitted; then its turn
    /// is held until a request for the site.
    Poll,
    /// Poll whose request waits for the turn of its visitor.
    LongPoll,
    /// More time for a turn; for a visitor without one a poll.
    ExtendTurn,
    /// Position in the queue: the visitor has to wait, whatever is free.
    Wait,
}

impl Intent {
    /// Whether only a waiting page asks for it, and not the site's own pages.
    #[must_use]
    pub fn is_poll(self) -> bool {
        match self {
            Self::Poll | Self::LongPoll | Self::ExtendTurn => true,
            Self::Enter | Self::Wait => false,
        }
    }
}

/// Next step of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Final: forward to the origin.
    Pass {
        /// Ticket of the visitor from now on.
        ticket: Ticket,
        /// End of its session.
        seat_ends_at: Timestamp,
        /// Whether the ticket is a new one for the visitor.
        is_new_ticket: bool,
        /// Whether the node lacks credits: a sync should begin, and this visitor does not wait for
        /// it.
        wants_sync: bool,
    },
    /// Final: admit, with this ticket.
    Admit(Ticket),
    /// Final: queue, with this ticket (none where there is no queue).
    Queue(Option<Ticket>, QueuePosition),
    /// Final, for [`Intent::Poll`]: the visitor would be admitted.
    WouldAdmit,
    /// The visitor is not active. Check the overrides, then go on.
    NotActive,
    /// Wait for the reply to a sync that begins now, then go on.
    SyncWithParent,
    /// Wait for the next reply of the parent, without a request for one, then go on.
    WaitForTurn,
    /// Take the next number of this counter, then go on with [`RequestFlow::handle_number`].
    TakeNumber(CounterKey),
}

/// State of a visitor when its request arrives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VisitorState {
    /// Active: its ticket was accepted and has not ended.
    Active,
    /// Waiting: it has a waiting ticket.
    Waiting,
    /// New: it has no valid ticket.
    New,
}

/// Request, and its progress through the room.
#[derive(Clone, Debug)]
pub struct RequestFlow {
    arrival: VisitorArrival,
    may_sync: bool,
    /// Whether it has waited for the parent with a ticket that was active.
    has_waited: bool,
    /// Loss of the session or the position that the ticket had.
    loss: Option<Loss>,
    /// Loss that no page has mentioned yet.
    unseen_loss: Option<Loss>,
    stage: Stage,
}

/// Longest time after which a response mentions a loss. A visitor who comes back later has left.
pub const LOSS_RECENT: DurationMs = DurationMs::from_secs(3_600);

#[derive(Clone, Copy, Debug)]
enum Stage {
    CheckIn(Ticket),
    /// Visitor who was active when it came, and whose ticket ended while it waited for a seat.
    Outlasted(Ticket),
    /// Visitor who is not active; the ticket is a waiting one.
    Arrived(Option<Ticket>),
    Visiting(Visit),
}

impl RequestFlow {
    /// Makes the flow of a request that has just arrived.
    #[must_use]
    pub fn new(arrival: VisitorArrival) -> Self {
        let accepted = arrival.ticket.filter(|ticket| ticket.accepted_at.is_some());
        Self {
            arrival,
            may_sync: true,
            has_waited: false,
            loss: None,
            unseen_loss: None,
            stage: match accepted {
                Some(ticket) => Stage::CheckIn(ticket),
                None => Stage::Arrived(arrival.ticket),
            },
        }
    }

    /// Sets whether another round trip to the parent is worth while. At first it is.
    pub fn set_may_sync(&mut self, may_sync: bool) {
        self.may_sync = may_sync;
        if let Stage::Visiting(visit) = &mut self.stage {
            visit.may_sync = may_sync;
        }
    }

    /// Ends the wait for a turn: the visitor has waited for long.
    pub fn end_wait_for_turn(&mut self) {
        let polls_on = self.arrival.intent == Intent::LongPoll;
        self.set_turn_wait(TurnWait::InVain { polls_on });
    }

    /// Allows no wait for a turn: too many wait.
    pub fn refuse_wait_for_turn(&mut self) {
        self.set_turn_wait(TurnWait::No);
    }

    fn set_turn_wait(&mut self, turn_wait: TurnWait) {
        if let Stage::Visiting(visit) = &mut self.stage {
            visit.turn_wait = turn_wait;
        }
    }

    /// Returns the visit, once it is clear that the visitor is not active.
    #[must_use]
    pub fn visit(&self) -> Option<Visit> {
        match self.stage {
            Stage::Visiting(visit) => Some(visit),
            Stage::CheckIn(_) | Stage::Outlasted(_) | Stage::Arrived(_) => None,
        }
    }

    /// Whether a new visitor only requests its position.
    #[must_use]
    pub fn is_look(&self) -> bool {
        self.arrival.intent.is_poll() && self.visitor_state() == VisitorState::New
    }

    /// Returns the visitor, who may be a new one.
    #[must_use]
    pub fn visitor(&self) -> VisitorId {
        match self.stage {
            Stage::CheckIn(ticket) | Stage::Outlasted(ticket) => ticket.visitor,
            Stage::Arrived(ticket) => ticket.map_or(self.arrival.fresh, |ticket| ticket.visitor),
            Stage::Visiting(visit) => visit.visitor,
        }
    }

    /// Returns the state of the visitor, as far as known.
    #[must_use]
    pub fn visitor_state(&self) -> VisitorState {
        match self.stage {
            Stage::CheckIn(_) | Stage::Outlasted(_) => VisitorState::Active,
            Stage::Arrived(Some(_)) => VisitorState::Waiting,
            Stage::Arrived(None) => VisitorState::New,
            Stage::Visiting(visit) if visit.ticket.is_some() => VisitorState::Waiting,
            Stage::Visiting(_) => VisitorState::New,
        }
    }

    /// Decides as far as possible at `now`.
    pub fn decide(&mut self, room: &mut Room, now: Timestamp) -> Step {
        let step = self.step(room, now);
        self.with_loss(step)
    }

    /// Returns the step with the loss, if the visitor is queued: it hears of it once, because its
    /// new ticket is good. If nobody sees this response, the next page mentions it.
    fn with_loss(&self, step: Step) -> Step {
        let Step::Queue(Some(ticket), position) = step else {
            return step;
        };
        let unseen = self.loss.or(self.unseen_loss);
        let is_seen = self.arrival.gets_page || self.arrival.intent.is_poll();
        let (loss, unseen_loss) = if is_seen {
            (unseen, None)
        } else {
            (None, unseen)
        };
        Step::Queue(
            Some(Ticket {
                unseen_loss,
                ..ticket
            }),
            QueuePosition { loss, ..position },
        )
    }

    fn step(&mut self, room: &mut Room, now: Timestamp) -> Step {
        let step = match self.stage {
            Stage::CheckIn(ticket) => self.check_in(ticket, room, now),
            Stage::Outlasted(ticket) => self.wait_on(ticket, room, now),
            Stage::Arrived(ticket) => {
                self.begin_visit(ticket, room, now);
                Step::NotActive
            }
            Stage::Visiting(visit) => {
                let visit = self.without_left_ticket(visit, room, now);
                let step = self.decide_visit(visit, room, now);
                if step == Step::WaitForTurn {
                    self.stage = Stage::Visiting(Visit {
                        turn_wait: TurnWait::Begun,
                        ..visit
                    });
                }
                step
            }
        };
        room.assert_sound();
        step
    }

    /// Goes on after a number was taken; `None`: the counter did not reply.
    pub fn handle_number(
        &mut self,
        number: (CounterKey, Option<u64>),
        room: &mut Room,
        now: Timestamp,
    ) -> Step {
        self.set_may_sync(false);
        match self.stage {
            Stage::Visiting(visit) => {
                let step = step_of(room.handle_number(visit, number, now));
                room.assert_sound();
                self.with_loss(step)
            }
            Stage::CheckIn(_) | Stage::Outlasted(_) | Stage::Arrived(_) => self.decide(room, now),
        }
    }

    fn check_in(&mut self, ticket: Ticket, room: &mut Room, now: Timestamp) -> Step {
        let visit = CheckInRequest {
            ticket,
            is_navigation: self.arrival.is_navigation,
            intent: self.arrival.intent,
            may_sync: self.may_sync,
        };
        let (ticket, is_new_ticket) = match room.handle_check_in(visit, now) {
            CheckIn::SyncWithParent => {
                self.has_waited = true;
                return Step::SyncWithParent;
            }
            CheckIn::Pass => (Some(ticket), false),
            CheckIn::Renewed(renewed) => (Some(renewed), true),
            // It ended during the wait. Without a seat the session is lost, so the visitor waits
            // for as long as any other.
            CheckIn::Over if self.has_waited && !self.arrival.intent.is_poll() => {
                self.stage = Stage::Outlasted(ticket);
                self.may_sync = true;
                return Step::NotActive;
            }
            CheckIn::Over => (None, false),
        };
        self.pass(ticket, is_new_ticket, room, now)
            .unwrap_or_else(|| {
                self.begin_visit(None, room, now);
                Step::NotActive
            })
    }

    /// Lets a visitor wait on whose ticket ended while it waited for a seat here.
    fn wait_on(&mut self, ticket: Ticket, room: &mut Room, now: Timestamp) -> Step {
        let seated = room.seat_after_wait(ticket, now);
        if let Some(step) = self.pass(seated, true, room, now) {
            return step;
        }
        if self.may_sync && room.wait_on(&ticket, now) {
            return Step::SyncWithParent;
        }
        self.begin_visit(None, room, now);
        self.step(room, now)
    }

    /// Returns the step that lets a visitor with this ticket pass; `None` if the ticket is over.
    fn pass(
        &self,
        ticket: Option<Ticket>,
        is_new_ticket: bool,
        room: &Room,
        now: Timestamp,
    ) -> Option<Step> {
        let closed_through = room.snapshot.closed_through;
        let inside = ticket.and_then(|ticket| {
            match ticket.standing(now, closed_through, &room.rules) {
                Standing::Active { ends_at } => Some((ticket, ends_at)),
                // It ended while its check-in waited for the parent.
                Standing::Waiting | Standing::Over => None,
            }
        });
        inside.map(|(ticket, seat_ends_at)| Step::Pass {
            ticket,
            seat_ends_at,
            is_new_ticket,
            wants_sync: room.demand.lacks_credit(),
        })
    }

    fn begin_visit(&mut self, ticket: Option<Ticket>, room: &mut Room, now: Timestamp) {
        let closed_through = room.snapshot.closed_through;
        let is_good = |ticket: &Ticket| {
            let standing = ticket.standing(now, closed_through, &room.rules);
            // A visitor whose session was revoked, or who left the queue, counts as new.
            standing == Standing::Waiting
                && !room.is_revoked(ticket.visitor)
                && !room.has_left_queue(ticket.visitor, now)
        };
        let mut waiting = ticket.filter(is_good);
        if waiting.is_none() {
            let lost = self.arrival.ticket;
            self.loss = lost.and_then(|ticket| loss_of(&ticket, room, now));
            if let Some(Loss::Turn { is_near_front, .. }) = self.loss {
                room.counters.missed_turns += 1;
                let missed = lost.filter(|_| is_near_front);
                waiting = missed.map(|ticket| ticket.after_missed_turn(now));
            }
        }
        self.unseen_loss = waiting.and_then(|ticket| ticket.unseen_loss);
        self.may_sync = true;
        let is_long_poll = self.arrival.intent == Intent::LongPoll;
        let may_wait = |ticket: &Ticket| is_long_poll || room.refreshes_slowly(ticket, now);
        let turn_wait = if waiting.as_ref().is_some_and(may_wait) {
            TurnWait::Possible
        } else {
            TurnWait::No
        };
        self.stage = Stage::Visiting(Visit {
            visitor: waiting.map_or(self.arrival.fresh, |ticket| ticket.visitor),
            ticket: waiting,
            may_sync: true,
            turn_wait,
            gets_page: self.arrival.gets_page,
            is_poll: self.arrival.intent.is_poll(),
        });
    }

    /// Returns the visit as one of a new visitor if its visitor left the queue while it waited.
    fn without_left_ticket(&mut self, visit: Visit, room: &mut Room, now: Timestamp) -> Visit {
        let ticket = visit.ticket;
        if !ticket.is_some_and(|ticket| room.has_left_queue(ticket.visitor, now)) {
            return visit;
        }
        let visit = Visit {
            visitor: self.arrival.fresh,
            ticket: None,
            ..visit
        };
        self.stage = Stage::Visiting(visit);
        visit
    }

    fn decide_visit(&self, visit: Visit, room: &mut Room, now: Timestamp) -> Step {
        if self.is_look() {
            return room
                .handle_look(visit, now)
                .map_or(Step::WouldAdmit, step_of);
        }
        step_of(match self.arrival.intent {
            Intent::Wait => room.handle_too_frequent(visit, now),
            Intent::Enter | Intent::Poll | Intent::LongPoll | Intent::ExtendTurn => {
                room.handle_visit(visit, now)
            }
        })
    }
}

/// Returns the loss of a visitor whose ticket is not good any more.
fn loss_of(ticket: &Ticket, room: &Room, now: Timestamp) -> Option<Loss> {
    let is_recent = |ended_at: Timestamp| ended_at <= now && now.since(ended_at) < LOSS_RECENT;
    if room.is_revoked(ticket.visitor) {
        return Some(Loss::Revoked);
    }
    if ticket.accepted_at.is_some() {
        let ended_at = ticket.seats.ends_at()?.min(now);
        if ticket.held_turn().is_some() {
            // Like a position, the arrival is kept for the grace time, and only once.
            let is_near_front =
                !ticket.has_missed_turn && now <= ended_at + room.rules.position_grace;
            return is_recent(ended_at).then_some(Loss::Turn {
                ended_at,
                is_near_front,
            });
        }
        let was_idle = room.rules.session_renewal && ticket.first_seat.is_none();
        return is_recent(ended_at).then_some(Loss::Session { ended_at, was_idle });
    }
    let last_request_at = ticket.last_check_in_at;
    let ended_at = last_request_at + room.rules.position_grace;
    is_recent(ended_at).then_some(Loss::Position {
        last_request_at,
        ended_at,
    })
}

fn step_of(verdict: Verdict) -> Step {
    match verdict {
        Verdict::Admit(ticket) => Step::Admit(ticket),
        Verdict::Queue(ticket, position) => Step::Queue(ticket, position),
        Verdict::SyncWithParent => Step::SyncWithParent,
        Verdict::WaitForTurn => Step::WaitForTurn,
        Verdict::TakeNumber(key) => Step::TakeNumber(key),
    }
}
