//! Room, its ledger, and a naive model that remembers every visitor.

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, NodeId, VisitorId};
use anteroom_room::ledger::{LeaseTerms, Ledger};
use anteroom_room::room::check_in::CheckInRequest;
use anteroom_room::room::request_flow::Intent;
use anteroom_room::room::{
    Capacity, CheckIn, Predecessors, Room, RoomIdentity, TurnWait, Verdict, Visit,
};
use anteroom_room::rules::{Limits, QueueingMethod, Rules, SeatNeedsCookie};
use anteroom_room::sync::Reply;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Minute, Timestamp};

/// Step of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    NewVisitor,
    WaitingPolls(usize),
    WaitingTicketReplayed(usize),
    ActiveReturns(usize, bool),
    OldTicketReturns(usize),
    Logout(usize),
    LogoutReplayed(usize),
    TimePasses(DurationMs),
    Sync,
    SyncReplyLost,
    SyncRequestLost,
    Crash,
    Goodbye,
    Limits(u32, u32),
    SessionDuration(DurationMs),
}

/// Room at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) total: u32,
    pub(crate) rate: u32,
    pub(crate) session: DurationMs,
    pub(crate) renewal: bool,
    pub(crate) method: QueueingMethod,
    pub(crate) cookie: SeatNeedsCookie,
}

pub(crate) struct Model {
    room: Room,
    ledger: Ledger,
    rules: Rules,
    now: Timestamp,
    ids: u64,
    incarnations: u64,
    waiting: Vec<Ticket>,
    /// Waiting tickets that were ever issued.
    shown: Vec<Ticket>,
    /// Accepted tickets that were ever issued, newest last.
    accepted: Vec<Ticket>,
    /// Newest end of each visitor that has not logged out.
    inside: BTreeMap<VisitorId, Timestamp>,
    logged_out: Vec<Ticket>,
    admitted_tickets: BTreeSet<(VisitorId, Option<Timestamp>)>,
    admissions: BTreeMap<Minute, u32>,
    /// Highest limit that explains the active visitors: after it was lowered, their number at that
    /// time, which never rises.
    seats_allowed: u32,
    rate_allowed: BTreeMap<Minute, u32>,
    problem: Option<String>,
}

impl Model {
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
            incarnations: 1,
            waiting: Vec::new(),
            shown: Vec::new(),
            accepted: Vec::new(),
            inside: BTreeMap::new(),
            logged_out: Vec::new(),
            admitted_tickets: BTreeSet::new(),
            admissions: BTreeMap::new(),
            seats_allowed: setup.total,
            rate_allowed: BTreeMap::new(),
            problem: None,
        }
    }

    pub(crate) fn perform(&mut self, step: Step) {
        match step {
            Step::NewVisitor => self.visit(None),
            Step::WaitingPolls(at) => {
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
            Step::ActiveReturns(at, is_navigation) => {
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
            Step::SyncReplyLost => self.sync(true, false),
            Step::SyncRequestLost => self.sync(false, false),
            Step::Crash => {
                self.ledger.give_up_all_leases(self.now);
                self.restart();
            }
            Step::Goodbye => {
                let request = self.room.poll_goodbye(self.now);
                self.report(&request);
                self.restart();
            }
            Step::Limits(total, rate) => {
                self.rules.limits.total_active_users = total;
                self.rules.limits.new_users_per_minute = rate;
                self.room.handle_rules(self.rules, self.now);
            }
            Step::SessionDuration(session) => {
                self.rules.session_duration = session;
                self.room.handle_rules(self.rules, self.now);
            }
        }
        self.note_limits();
    }

    /// Checks the model after every step.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        let inside = self.active_visitors();
        if inside > self.seats_allowed {
            return Err(format!("{inside} active, allowed {}", self.seats_allowed));
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

    fn active_visitors(&self) -> u32 {
        let inside = self.inside.values().filter(|end| **end > self.now).count();
        u32::try_from(inside).expect("the model has few visitors")
    }

    fn note_limits(&mut self) {
        let limits = self.rules.limits;
        self.seats_allowed = self
            .seats_allowed
            .min(self.active_visitors())
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
            is_poll: false,
            visitor: ticket.map_or(VisitorId(visitor), |ticket| ticket.visitor),
            ticket,
            may_sync: true,
            turn_wait: TurnWait::No,
            gets_page: false,
        };
        let mut verdict = self.room.handle_visit(visit, self.now);
        if verdict == Verdict::SyncWithParent {
            self.sync(true, true);
            visit.may_sync = false;
            verdict = self.room.handle_visit(visit, self.now);
        }
        match verdict {
            Verdict::Admit(ticket) => {
                // A visitor who was admitted before gets the same seat again.
                let is_new = self
                    .admitted_tickets
                    .insert((ticket.visitor, ticket.accepted_at));
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
        let mut visit = CheckInRequest {
            intent: Intent::Enter,
            ticket,
            is_navigation,
            may_sync: true,
        };
        if !self.room.is_joined() {
            // A process lets no visitor pass before its ledger knows of it.
            self.sync(true, true);
        }
        let mut done = self.room.handle_check_in(visit, self.now);
        if done == CheckIn::SyncWithParent {
            self.sync(true, true);
            visit.may_sync = false;
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
                self.problem = Some("a valid ticket was rejected".into());
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
            CheckIn::SyncWithParent => self.problem = Some("asked twice".into()),
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

    /// Logs out and, as the gateway does, reports it to the parent before the response.
    fn log_out(&mut self, ticket: Ticket) {
        self.room.handle_revoke(ticket, self.now);
        if self.room.is_revoked(ticket.visitor) {
            self.inside.remove(&ticket.visitor);
            // A visitor who leaves does not queue with an old ticket; the node rejects that
            // meanwhile.
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

    fn sync(&mut self, is_received: bool, is_reply_received: bool) {
        let request = self.room.poll_sync(self.now);
        if !is_received {
            return;
        }
        let reply = self.report(&request);
        self.check_counts();
        if is_reply_received {
            self.room.handle_reply(reply, self.now);
        }
    }

    fn report(&mut self, request: &anteroom_room::sync::SyncRequest) -> Reply {
        let ledger = std::mem::take(&mut self.ledger);
        let (ledger, reply) = ledger.sync(request, LeaseTerms::default(), self.now);
        self.ledger = ledger;
        reply
    }

    /// After a report nothing is unreported: the count may exceed the truth and is never below.
    fn check_counts(&mut self) {
        let counted = self.ledger.active() + self.ledger.phantoms();
        let inside = self.active_visitors();
        if counted < inside {
            self.problem = Some(format!("counted {counted} of {inside} active visitors"));
        }
    }

    fn restart(&mut self) {
        self.incarnations += 1;
        self.room = new_room(self.rules, self.incarnations, self.now);
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
