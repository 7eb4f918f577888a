//! A room, its ledger, and a naive model that remembers every visitor.

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, NodeId, VisitorId};
use anteroom_room::ledger::{LeaseTerms, Ledger};
use anteroom_room::room::check_in::Return;
use anteroom_room::room::{Capacity, CheckIn, Predecessors, Room, RoomIdentity, Verdict, Visit};
use anteroom_room::rules::{Limits, QueueingMethod, Rules, SeatNeedsCookie};
use anteroom_room::sync::Reply;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Minute, Timestamp};

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    NewVisitor,
    WaitingAsks(usize),
    WaitingTicketReplayed(usize),
    InsideReturns(usize, bool),
    OldTicketReturns(usize),
    Logout(usize),
    LogoutReplayed(usize),
    TimePasses(DurationMs),
    Sync,
    SyncAnswerLost,
    SyncRequestLost,
    Crash,
    Goodbye,
    Limits(u32, u32),
    SessionDuration(DurationMs),
}

/// A room at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) total: u32,
    pub(crate) rate: u32,
    pub(crate) session: DurationMs,
    pub(crate) renewal: bool,
    pub(crate) method: QueueingMethod,
    pub(crate) cookie: SeatNeedsCookie,
}

pub(crate) struct World {
    room: Room,
    ledger: Ledger,
    rules: Rules,
    now: Timestamp,
    ids: u64,
    lives: u64,
    waiting: Vec<Ticket>,
    /// Every waiting ticket that was ever shown.
    shown: Vec<Ticket>,
    /// Every accepted ticket that was ever given, newest last.
    accepted: Vec<Ticket>,
    /// The newest end of each visitor, while it has not logged out.
    inside: BTreeMap<VisitorId, Timestamp>,
    logged_out: Vec<Ticket>,
    let_in: BTreeSet<(VisitorId, Option<Timestamp>)>,
    admissions: BTreeMap<Minute, u32>,
    /// The highest limit that could still explain who is inside: after it was lowered, those who
    /// were inside then, and never rising.
    seats_allowed: u32,
    rate_allowed: BTreeMap<Minute, u32>,
    problem: Option<String>,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let rules = Rules {
            limits: Limits {
                total_active_users: setup.total,
                new_users_per_minute: setup.rate,
            },
            session_duration: setup.session,
            session_renewal: setup.renewal,
            queueing_method: setup.method,
            seat_needs_cookie: setup.cookie,
            ..Rules::default()
        };
        Self {
            room: new_room(rules, 1, Timestamp(1_694_432_754_000)),
            ledger: Ledger::new(),
            rules,
            now: Timestamp(1_694_432_754_000),
            ids: 0,
            lives: 1,
            waiting: Vec::new(),
            shown: Vec::new(),
            accepted: Vec::new(),
            inside: BTreeMap::new(),
            logged_out: Vec::new(),
            let_in: BTreeSet::new(),
            admissions: BTreeMap::new(),
            seats_allowed: setup.total,
            rate_allowed: BTreeMap::new(),
            problem: None,
        }
    }

    pub(crate) fn perform(&mut self, step: Step) {
        match step {
            Step::NewVisitor => self.visit(None),
            Step::WaitingAsks(at) => {
                if !self.waiting.is_empty() {
                    let ticket = self.waiting.remove(at % self.waiting.len());
                    self.visit(Some(ticket));
                }
            }
            Step::WaitingTicketReplayed(at) => {
                if !self.shown.is_empty() {
                    let ticket = self.shown[at % self.shown.len()];
                    let age = self.now.since(ticket.last_check_in_at);
                    let is_out = self.logged_out.iter().any(|t| t.visitor == ticket.visitor);
                    if age < self.rules.position_grace && !is_out {
                        self.visit(Some(ticket));
                    }
                }
            }
            Step::InsideReturns(at, is_navigation) => {
                if let Some(ticket) = self.newest_ticket(at) {
                    self.come_back(ticket, is_navigation);
                }
            }
            Step::OldTicketReturns(at) => {
                if !self.accepted.is_empty() {
                    let ticket = self.accepted[at % self.accepted.len()];
                    self.come_back(ticket, true);
                }
            }
            Step::Logout(at) => {
                if let Some(ticket) = self.newest_ticket(at) {
                    self.log_out(ticket);
                }
            }
            Step::LogoutReplayed(at) => {
                if !self.logged_out.is_empty() {
                    let ticket = self.logged_out[at % self.logged_out.len()];
                    self.log_out(ticket);
                }
            }
            Step::TimePasses(span) => self.now = self.now + span,
            Step::Sync => self.sync(true, true),
            Step::SyncAnswerLost => self.sync(true, false),
            Step::SyncRequestLost => self.sync(false, false),
            Step::Crash => {
                self.ledger.presume_children_dead(self.now);
                self.start_anew();
            }
            Step::Goodbye => {
                let request = self.room.poll_goodbye(self.now);
                self.tell(&request);
                self.start_anew();
            }
            Step::Limits(total, rate) => {
                self.rules.limits.total_active_users = total;
                self.rules.limits.new_users_per_minute = rate;
                self.room.handle_rules(self.rules);
            }
            Step::SessionDuration(session) => {
                self.rules.session_duration = session;
                self.room.handle_rules(self.rules);
            }
        }
        self.note_limits();
    }

    /// What must hold after every step.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        let inside = self.really_inside();
        if inside > self.seats_allowed {
            return Err(format!("{inside} inside, allowed {}", self.seats_allowed));
        }
        let minute = self.now.minute();
        let admitted = self.admissions.get(&minute).copied().unwrap_or(0);
        let allowed = self.rate_allowed.get(&minute).copied().unwrap_or(0);
        if admitted > allowed {
            return Err(format!(
                "{admitted} admitted in a minute, allowed {allowed}"
            ));
        }
        Ok(())
    }

    fn really_inside(&self) -> u32 {
        let inside = self.inside.values().filter(|end| **end > self.now).count();
        u32::try_from(inside).expect("the model has few visitors")
    }

    fn note_limits(&mut self) {
        let limits = self.rules.limits;
        self.seats_allowed = self
            .seats_allowed
            .min(self.really_inside())
            .max(limits.total_active_users);
        let minute = self.now.minute();
        let admitted = self.admissions.get(&minute).copied().unwrap_or(0);
        let allowed = self.rate_allowed.entry(minute).or_insert(0);
        *allowed = (*allowed).min(admitted).max(limits.new_users_per_minute);
    }

    fn visit(&mut self, ticket: Option<Ticket>) {
        self.shown.extend(ticket);
        self.ids += 1;
        let mut visitor = [0; 16];
        visitor[..8].copy_from_slice(&self.ids.to_le_bytes());
        let mut visit = Visit {
            visitor: ticket.map_or(VisitorId(visitor), |ticket| ticket.visitor),
            ticket,
            may_ask_parent: true,
            gets_page: false,
        };
        let mut verdict = self.room.handle_visit(visit, self.now);
        if verdict == Verdict::AskParent {
            self.sync(true, true);
            visit.may_ask_parent = false;
            verdict = self.room.handle_visit(visit, self.now);
        }
        match verdict {
            Verdict::Admit(ticket) => {
                // Somebody who was let in before is handed the same seat again.
                let is_new = self.let_in.insert((ticket.visitor, ticket.accepted_at));
                if is_new {
                    *self.admissions.entry(self.now.minute()).or_insert(0) += 1;
                }
                self.take_note(ticket);
            }
            Verdict::Queue(Some(ticket), _) => self.waiting.push(ticket),
            other => self.problem = Some(format!("unexpected verdict {other:?}")),
        }
    }

    fn come_back(&mut self, ticket: Ticket, is_navigation: bool) {
        let is_logged_out = self.logged_out.iter().any(|t| t.visitor == ticket.visitor);
        let mut visit = Return {
            ticket,
            is_navigation,
            may_ask_parent: true,
        };
        if !self.room.is_joined() {
            // No process lets anybody pass before its ledger knows of it.
            self.sync(true, true);
        }
        let mut done = self.room.handle_check_in(visit, self.now);
        if done == CheckIn::AskParent {
            self.sync(true, true);
            visit.may_ask_parent = false;
            done = self.room.handle_check_in(visit, self.now);
        }
        let ends_at = ticket
            .seats
            .ends_at()
            .expect("an accepted ticket has a seat");
        match done {
            CheckIn::Pass if ends_at <= self.now => {
                self.problem = Some("passed after its end".into());
            }
            CheckIn::Over if ends_at > self.now && !is_logged_out => {
                self.problem = Some("a valid ticket was refused".into());
            }
            CheckIn::Pass | CheckIn::Renewed(_) if is_logged_out => {
                self.problem = Some("passed after logging out".into());
            }
            CheckIn::Renewed(renewed) => {
                if renewed.seats.ends_at() < ticket.seats.ends_at() {
                    self.problem = Some("moved to an earlier end".into());
                }
                self.take_note(renewed);
            }
            CheckIn::AskParent => self.problem = Some("asked twice".into()),
            CheckIn::Pass | CheckIn::Over => {}
        }
    }

    fn take_note(&mut self, ticket: Ticket) {
        let end = ticket
            .seats
            .ends_at()
            .expect("an accepted ticket has a seat");
        let known = self.inside.entry(ticket.visitor).or_insert(end);
        *known = end.max(*known);
        self.accepted.push(ticket);
    }

    /// Logs out and, as the gateway does, tells the parent before the answer goes out.
    fn log_out(&mut self, ticket: Ticket) {
        self.room.handle_revoke(ticket, self.now);
        if self.room.is_revoked(ticket.visitor) {
            self.inside.remove(&ticket.visitor);
            // Who leaves does not queue with an old ticket; that it is refused meanwhile is the
            // node's business.
            self.shown.retain(|shown| shown.visitor != ticket.visitor);
            self.waiting.retain(|shown| shown.visitor != ticket.visitor);
            self.logged_out.push(ticket);
        }
        self.sync(true, true);
    }

    fn newest_ticket(&self, at: usize) -> Option<Ticket> {
        let visitors: Vec<_> = self.inside.keys().collect();
        let visitor = **visitors.get(at % visitors.len().max(1))?;
        let newest = self.accepted.iter().rev();
        newest.copied().find(|ticket| ticket.visitor == visitor)
    }

    fn sync(&mut self, is_heard: bool, is_answered: bool) {
        let request = self.room.poll_sync(self.now);
        if !is_heard {
            return;
        }
        let reply = self.tell(&request);
        self.check_counts();
        if is_answered {
            self.room.handle_reply(reply, self.now);
        }
    }

    fn tell(&mut self, request: &anteroom_room::sync::SyncRequest) -> Reply {
        let ledger = std::mem::take(&mut self.ledger);
        let (ledger, reply) = ledger.sync(request, LeaseTerms::default(), self.now);
        self.ledger = ledger;
        reply
    }

    /// Right after a report nothing is unreported: the count may be above the truth, not below.
    fn check_counts(&mut self) {
        let counted = self.ledger.inside() + self.ledger.phantoms();
        let inside = self.really_inside();
        if counted < inside {
            self.problem = Some(format!("counted {counted} of {inside} inside"));
        }
    }

    fn start_anew(&mut self) {
        self.lives += 1;
        self.room = new_room(self.rules, self.lives, self.now);
    }
}

fn new_room(rules: Rules, incarnation: u64, now: Timestamp) -> Room {
    let identity = RoomIdentity {
        node: NodeId(incarnation),
        process: NodeId(incarnation),
        is_alone: true,
        data_center: DataCenterId(1),
        lottery_key: LotteryKey([1; 16]),
    };
    Room::new(
        identity,
        Predecessors::default(),
        rules,
        Capacity::default(),
        now,
    )
}
