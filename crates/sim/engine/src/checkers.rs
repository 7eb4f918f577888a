//! Checkers, one for each invariant. They see what a client sees: admissions, ends of sessions, and
//! requests that were queued.
//!
//! They know the true time and the limits, and nothing of the implementation. Only `no_waste` and
//! `recovery` read public counts of a ledger, because their invariants mention them.

mod count;
mod events;
pub(crate) mod idle;
pub(crate) mod inside;
mod no_waste;
mod order;
mod rate;
pub(crate) mod recovery;
mod seats;

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::id::VisitorId;
use anteroom_room::ledger::LEASE_TTL;
use anteroom_room::rules::{AllocationKind, Limits, NewUsersWindow, Rules};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};

use crate::outcome::{Invariant, Violation};
use crate::scenario::model::{FaultKind, Scenario};
use count::Counts;
pub(crate) use count::WaitResponse;
use events::Events;
pub(crate) use events::{Ranked, ScheduledNode};
use inside::Unseated;
pub(crate) use no_waste::QueuedVisitor;
pub(crate) use order::Admission;
use rate::{Excess, Rate};
use recovery::Recovery;
use seats::Seats;

/// Messages of two upstream syncs, one after the other.
const LEGS: u64 = 8;
/// Messages of two upstream syncs with lost races, some of which make a sync fail.
const LEGS_FAR: u64 = 32;

/// One-way delay beyond which a root counts as far.
const FAR: DurationMs = DurationMs(150);

/// Largest error of a node's clock under which invariants about true time hold.
const CLOCK_ERROR_MAX: DurationMs = DurationMs(500);

/// Number of violations that are kept in full.
const VIOLATIONS_MAX: usize = 100;

/// All checkers and the violations that they found.
#[derive(Debug)]
pub struct Checkers {
    pub(crate) seats: Seats,
    pub(crate) rate: Rate,
    recovery: Recovery,
    counts: Counts,
    events: Events,
    /// Whether a wall clock of a node steps in the run.
    have_walls_stepped: bool,
    /// Whether nodes may miss a part of the schedule and look at it again later.
    may_miss_steps: bool,
    /// Time until which past faults may have effects, without changes of rules.
    disturbed_until: Timestamp,
    /// Time until which nodes may not hear of visitors who wait at other nodes.
    unheard_until: Timestamp,
    /// Whether the allocation promises limits. Only leases do; for the others an excess is a
    /// statistic.
    keeps_limits: bool,
    starts_at: Timestamp,
    /// Largest error of a node's clock.
    tolerance: DurationMs,
    slack: DurationMs,
    /// Time after which a visitor is overdue whose room has an interval of its own.
    overdue_after: DurationMs,
    is_root_far: bool,
    /// Time until which visitors of a lost record may be active, while nobody who knew of it was in
    /// touch with the new one.
    unknown_loss_until: Timestamp,
    /// Time until which past faults may have effects.
    faults_until: Timestamp,
    /// Time as `faults_until`, without faults between data centers and the root. Active visitors do
    /// not notice those while leases run.
    local_faults_until: Timestamp,
    /// Time of the newest seat in each data center for a visitor from another one.
    seated_at: BTreeMap<u32, Timestamp>,
    queued_with_ticket: u64,
    violations: Vec<Violation>,
    violation_count: u64,
    /// Visitors whose session was ended with a ticket other than their newest.
    logged_out: BTreeSet<VisitorId>,
    /// Ends of sessions without a record in `Watched`: a copy of a ticket was admitted as a new
    /// visitor.
    untracked: BTreeMap<VisitorId, Timestamp>,
    /// Visitors admitted at this moment: two copies of a ticket may get a response at once.
    just_admitted: (Timestamp, Vec<VisitorId>),
}

/// Record of one visitor for the checkers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watched {
    /// Visitor that its tickets name.
    id: Option<VisitorId>,
    /// Latest end of all its tickets.
    ends_at: Timestamp,
    accepted_at: Timestamp,
    accepted_by: u32,
    last_request_at: Timestamp,
    /// Whether it has kept coming, and all nodes had a live lease.
    is_steady: bool,
    /// Set while it visits a data center where it has no seat.
    unseated: Option<Unseated>,
    is_logged_out: bool,
    /// Whether it was admitted outside the limits.
    is_uncounted: bool,
}

impl Watched {
    /// Whether this is the record of the holder of this id.
    pub(crate) fn is_of(&self, visitor: VisitorId) -> bool {
        self.id == Some(visitor)
    }

    /// Whether the holder of this id has logged out, and was counted before.
    pub(crate) fn is_gone(&self, visitor: VisitorId) -> bool {
        self.is_of(visitor) && self.is_logged_out && !self.is_uncounted
    }

    pub(crate) fn accepted_at(&self) -> Timestamp {
        self.accepted_at
    }
}

/// Whether a wall clock of a node steps, by itself or with room time.
fn walls_step(scenario: &Scenario) -> bool {
    let mut faults = scenario.faults.iter();
    faults.any(|fault| match fault.kind {
        FaultKind::NodeWallClockSteps { .. } => true,
        FaultKind::NodeClockIsOff { .. } => fault.at > DurationMs::ZERO,
        _ => false,
    })
}

fn nodes_pause(scenario: &Scenario) -> bool {
    let mut faults = scenario.faults.iter();
    faults.any(|fault| matches!(fault.kind, FaultKind::Pause { .. }))
}

impl Checkers {
    /// Makes the checkers of a run under these rules.
    pub(crate) fn new(scenario: &Scenario, rules: &Rules) -> Self {
        let errors = scenario.faults.iter().map(|fault| match fault.kind {
            FaultKind::NodeClockIsOff {
                by_ms, drifts_ppm, ..
            } => {
                let drifted = scenario.length.0 * u64::from(drifts_ppm.unsigned_abs()) / 1_000_000;
                by_ms.unsigned_abs() + drifted + u64::from(drifts_ppm != 0)
            }
            _ => 0,
        });
        let tolerance = DurationMs(errors.max().unwrap_or(0));
        let legs = scenario.data_centers.iter();
        let longest = legs.map(|plan| plan.to_store.to + plan.to_global.to).max();
        let longest = longest.unwrap_or_default();
        // Where a trip takes longer than a period, syncs lose races.
        let legs = if longest > FAR { LEGS_FAR } else { LEGS };
        let far = longest.times(legs);
        let is_sliding = rules.new_users_window == NewUsersWindow::Sliding;
        let hold = scenario.global_lease.max(LEASE_TTL) + far;
        let intervals = scenario.rooms.iter();
        let intervals = intervals.filter_map(|room| room.rules.refresh_interval);
        Self {
            seats: Seats::new(rules.limits.total_active_users, tolerance),
            rate: Rate::new(rules.limits.new_users_per_minute, is_sliding, hold),
            recovery: Recovery::default(),
            keeps_limits: rules.allocation == AllocationKind::Leases,
            counts: Counts::new(scenario.safe_after()),
            events: Events::default(),
            have_walls_stepped: walls_step(scenario),
            may_miss_steps: walls_step(scenario) || nodes_pause(scenario),
            disturbed_until: Timestamp::ZERO,
            unheard_until: Timestamp::ZERO,
            starts_at: scenario.starts_at,
            tolerance,
            slack: tolerance.times(2) + far,
            overdue_after: count::overdue_after(intervals.max().unwrap_or_default()),
            is_root_far: longest > FAR,
            unknown_loss_until: Timestamp::ZERO,
            faults_until: Timestamp::ZERO,
            local_faults_until: Timestamp::ZERO,
            seated_at: BTreeMap::new(),
            queued_with_ticket: 0,
            violations: Vec::new(),
            violation_count: 0,
            logged_out: BTreeSet::new(),
            untracked: BTreeMap::new(),
            just_admitted: (Timestamp::ZERO, Vec::new()),
        }
    }

    /// Whether a trip to the root takes longer than a visitor waits.
    pub(crate) fn is_root_far(&self) -> bool {
        self.is_root_far
    }

    /// Records that an active visitor from another data center got a seat in this one.
    pub(crate) fn handle_seated(&mut self, data_center: u32, now: Timestamp) {
        self.seated_at.insert(data_center, now);
    }

    /// Returns the first hundred violations.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Returns the number of violations.
    #[must_use]
    pub fn violation_count(&self) -> u64 {
        self.violation_count
    }

    /// Returns the number of visitors with a valid ticket who were queued.
    #[must_use]
    pub fn queued_with_ticket(&self) -> u64 {
        self.queued_with_ticket
    }

    /// Records the highest limits of all nodes from now on, and whether the window of all slides.
    pub(crate) fn handle_limits(&mut self, highest: Limits, is_sliding: bool, now: Timestamp) {
        self.seats.handle_limit(highest.total_active_users, now);
        self.rate
            .handle_limit(highest.new_users_per_minute, is_sliding, now);
    }

    /// Records a fault that may have effects until `until`.
    pub(crate) fn handle_fault(&mut self, until: Timestamp, is_far_away: bool) {
        self.faults_until = self.faults_until.max(until);
        if !is_far_away {
            self.local_faults_until = self.local_faults_until.max(until);
        }
    }

    /// Returns the delay that distance and wrong clocks add to the deadlines of all checkers.
    pub(crate) fn slack(&self) -> DurationMs {
        self.slack
    }

    /// Records a fault that may have effects until `until`, other than a change of rules.
    pub(crate) fn handle_disturbance(&mut self, until: Timestamp) {
        self.disturbed_until = self.disturbed_until.max(until);
    }

    /// Records a fault that may keep nodes from hearing of waiting visitors until `until`. A loss
    /// of counts is none: all who wait are counted anew within a minute.
    pub(crate) fn handle_silence(&mut self, until: Timestamp) {
        self.unheard_until = self.unheard_until.max(until);
    }

    /// Whether each node hears of the visitors who wait at others.
    pub(crate) fn are_all_heard(&self, now: Timestamp) -> bool {
        now >= self.unheard_until
    }

    /// Whether no fault other than a change of rules may have effects.
    pub(crate) fn is_undisturbed(&self, now: Timestamp) -> bool {
        now >= self.disturbed_until
    }

    pub(crate) fn is_calm(&self, now: Timestamp) -> bool {
        now >= self.faults_until
    }

    /// Whether this is a new admission and not the second response to one.
    pub(crate) fn is_admission(
        &self,
        watched: &Watched,
        ticket: &Ticket,
        node: u32,
        at: Timestamp,
    ) -> bool {
        let (admitted_at, who) = &self.just_admitted;
        if *admitted_at == at && who.contains(&ticket.visitor) {
            return false;
        }
        let is_repeated = watched.id == Some(ticket.visitor)
            && watched.accepted_by == node
            && Some(watched.accepted_at) == ticket.accepted_at;
        ticket.accepted_at == Some(at) && !is_repeated
    }

    /// Records an admission by `node`, under the limits or outside them.
    pub(crate) fn handle_admission(
        &mut self,
        watched: &mut Watched,
        ticket: &Ticket,
        (node, is_uncounted): (u32, bool),
        now: Timestamp,
    ) {
        let accepted_at = ticket.accepted_at.unwrap_or(now);
        if self.just_admitted.0 != accepted_at {
            self.just_admitted = (accepted_at, Vec::new());
        }
        self.just_admitted.1.push(ticket.visitor);
        if watched.id != Some(ticket.visitor) {
            // All counters see a new visitor; the former one's seat remains taken until its end.
            *watched = Watched {
                id: Some(ticket.visitor),
                last_request_at: now,
                is_steady: true,
                is_uncounted,
                ..Watched::default()
            };
        } else if watched.is_uncounted || watched.ends_at <= now {
            // Its earlier session may have been under other rules.
            watched.is_uncounted = is_uncounted;
            watched.ends_at = Timestamp::ZERO;
        }
        watched.accepted_at = accepted_at;
        watched.accepted_by = node;
        self.recovery.handle_admission(now);
        self.handle_ticket(watched, ticket, now);
        if is_uncounted {
            return;
        }
        let (count, limit) = self.rate.count(accepted_at.minute());
        if count > limit && self.keeps_limits {
            self.report(Invariant::Rate, now, || {
                format!("admission {count} of a minute, {limit} allowed")
            });
        }
        let excess = self.rate.count_at(now);
        // Further apart, clocks are outside the promise.
        if let Some(excess) =
            excess.filter(|_| self.keeps_limits && self.tolerance <= CLOCK_ERROR_MAX)
        {
            self.report(Invariant::Rate, now, || {
                let Excess {
                    count,
                    limit,
                    length,
                } = excess;
                format!("{count} admissions within {length}, {limit} allowed")
            });
        }
    }

    /// Records a ticket with a later end.
    pub(crate) fn handle_ticket(&mut self, watched: &mut Watched, ticket: &Ticket, now: Timestamp) {
        let Some(ends_at) = ticket.seats.ends_at() else {
            return;
        };
        if watched.id != Some(ticket.visitor) || watched.is_logged_out {
            return;
        }
        if ends_at <= watched.ends_at {
            return;
        }
        let before = std::mem::replace(&mut watched.ends_at, ends_at);
        if watched.is_uncounted {
            return;
        }
        let (inside, most) = self.seats.handle_move(before, ends_at, now);
        if inside > most && self.keeps_limits {
            self.report(Invariant::Seats, now, || {
                format!("{inside} active visitors, {most} allowed")
            });
        }
    }

    /// Records that a node ended the session of a ticket that no visitor uses now.
    pub(crate) fn handle_untracked_log_out(&mut self, visitor: VisitorId, now: Timestamp) {
        self.logged_out.insert(visitor);
        if let Some(ends_at) = self.untracked.remove(&visitor)
            && ends_at > now
        {
            self.seats.handle_leave(ends_at, now);
        }
    }

    /// Records an admission that belongs to no visitor's record.
    pub(crate) fn note_untracked(&mut self, ticket: &Ticket, now: Timestamp) {
        self.untracked.retain(|_, ends_at| *ends_at > now);
        if let Some(ends_at) = ticket.seats.ends_at() {
            self.untracked.insert(ticket.visitor, ends_at);
        }
    }

    /// Whether a node confirmed the logout of this visitor.
    pub(crate) fn is_logged_out(&self, visitor: VisitorId) -> bool {
        self.logged_out.contains(&visitor)
    }

    /// Records that a node confirmed a logout.
    pub(crate) fn handle_log_out(&mut self, watched: &mut Watched, now: Timestamp) {
        if !watched.is_uncounted && !watched.is_logged_out {
            self.seats.handle_leave(watched.ends_at, now);
        }
        watched.is_logged_out = true;
    }

    /// Checks a visitor who passed after its logout at another node. While a node may not know of
    /// the logout, the seat must not be given away.
    pub(crate) fn check_passed_after_logout(&mut self, accepted_at: Timestamp, now: Timestamp) {
        let inside = self.seats.inside(now) + 1;
        // After the limit was lowered, visitors from before may exceed it; this may be one of them.
        let was_lowered = self.seats.lowered_at() >= accepted_at;
        let most = self.seats.most() + u32::from(was_lowered);
        if inside > most && self.keeps_limits {
            self.report(Invariant::Seats, now, || {
                format!("{inside} active visitors with one who had logged out, {most} allowed")
            });
        }
    }

    /// Records that the root cannot know of visitors who are active until `until` at the latest.
    pub(crate) fn handle_unknown_loss(&mut self, until: Timestamp) {
        self.unknown_loss_until = until;
    }

    pub(crate) fn report(
        &mut self,
        promise: Invariant,
        now: Timestamp,
        seen: impl FnOnce() -> String,
    ) {
        if promise == Invariant::Seats && now < self.unknown_loss_until {
            return;
        }
        self.violation_count += 1;
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation {
                promise,
                at_ms: now.since(self.starts_at).0,
                seen: seen(),
            });
        }
    }
}
