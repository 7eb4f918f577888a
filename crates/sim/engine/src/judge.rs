//! Is what was promised kept? One checker for each promise, which sees what everybody outside
//! sees: who was let in, until when, and who was refused.
//!
//! It knows the true time and the limits, and not how the machinery works. Only `no_waste` and
//! `recovery` look at a ledger's public figures, because their promises speak of them.

pub(crate) mod idle;
pub(crate) mod inside;
mod no_waste;
mod order;
mod rate;
pub(crate) mod recovery;
mod seats;

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::id::VisitorId;
use anteroom_room::rules::{AllocationKind, Limits};
use anteroom_room::ticket::Ticket;
use anteroom_room::time::{DurationMs, Timestamp};

use crate::outcome::{Promise, Violation};
use crate::scenario::model::{FaultKind, Scenario};
use inside::Away;
pub(crate) use no_waste::InvalidValue;
pub(crate) use order::Admission;
use rate::Rate;
use recovery::Recovery;
use seats::Seats;

/// Legs of two errands to the root, one after the other.
const LEGS: u64 = 8;
/// The same with races that are lost, some of them so often that an errand is given up.
const LEGS_FAR: u64 = 32;

/// One way to a root that is farther than most.
const FAR: DurationMs = DurationMs(150);

/// Violations that are told one by one.
const VIOLATIONS_MAX: usize = 100;

/// All checkers and what they found.
#[derive(Debug)]
pub struct Checkers {
    pub(crate) seats: Seats,
    pub(crate) rate: Rate,
    recovery: Recovery,
    /// Only leases promise limits; for the others an excess is a figure.
    has_promised_limits: bool,
    starts_at: Timestamp,
    /// The largest error of a node's clock.
    tolerance: DurationMs,
    slack: DurationMs,
    is_root_far: bool,
    /// Until when the machinery may be in trouble, as far as faults have happened.
    trouble_until: Timestamp,
    /// The same without troubles between data centers and the world: those inside feel nothing of
    /// them as long as leases run.
    upset_until: Timestamp,
    /// When somebody who had come from elsewhere last got a seat in each data center.
    seated_at: BTreeMap<u32, Timestamp>,
    thrown_out: u64,
    violations: Vec<Violation>,
    violation_count: u64,
    /// Sessions that were ended with a ticket that was not its holder's newest.
    logged_out: BTreeSet<VisitorId>,
    /// Until when those are inside of whom no visitor's notes tell: a copy was let in as somebody
    /// new.
    strays: BTreeMap<VisitorId, Timestamp>,
    /// Who was let in at this moment: a copy of a ticket may be answered twice at once.
    just_admitted: (Timestamp, Vec<VisitorId>),
}

/// What the judge knows of one visitor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watched {
    /// Whose tickets these are.
    id: Option<VisitorId>,
    /// The latest end of any of its tickets.
    ends_at: Timestamp,
    accepted_at: Timestamp,
    accepted_by: u32,
    last_request_at: Timestamp,
    /// It has kept coming, and always met nodes in touch.
    is_steady: bool,
    /// It is in a data center where it has no seat.
    away: Option<Away>,
    is_logged_out: bool,
    /// It was let in outside the limits.
    is_uncounted: bool,
}

impl Watched {
    /// Whether these are notes about the holder of this id.
    pub(crate) fn is_of(&self, visitor: VisitorId) -> bool {
        self.id == Some(visitor)
    }

    /// Whether the holder of this id has ended its session, and was counted while it ran.
    pub(crate) fn is_gone(&self, visitor: VisitorId) -> bool {
        self.is_of(visitor) && self.is_logged_out && !self.is_uncounted
    }

    pub(crate) fn accepted_at(&self) -> Timestamp {
        self.accepted_at
    }
}

impl Checkers {
    pub(crate) fn new(scenario: &Scenario, allocation: AllocationKind, limits: Limits) -> Self {
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
        // Where a trip takes longer than the time between two of them, races are lost.
        let legs = if longest > FAR { LEGS_FAR } else { LEGS };
        let far = longest.times(legs);
        Self {
            seats: Seats::new(limits.total_active_users, tolerance),
            rate: Rate::new(limits.new_users_per_minute),
            recovery: Recovery::default(),
            has_promised_limits: allocation == AllocationKind::Leases,
            starts_at: scenario.starts_at,
            tolerance,
            slack: tolerance.times(2) + far,
            is_root_far: longest > FAR,
            trouble_until: Timestamp::ZERO,
            upset_until: Timestamp::ZERO,
            seated_at: BTreeMap::new(),
            thrown_out: 0,
            violations: Vec::new(),
            violation_count: 0,
            logged_out: BTreeSet::new(),
            strays: BTreeMap::new(),
            just_admitted: (Timestamp::ZERO, Vec::new()),
        }
    }

    /// Whether no trip to the root fits into the time for which a visitor waits.
    pub(crate) fn is_root_far(&self) -> bool {
        self.is_root_far
    }

    /// Somebody who was inside by a seat elsewhere got one in this data center.
    pub(crate) fn handle_seated(&mut self, data_center: u32, now: Timestamp) {
        self.seated_at.insert(data_center, now);
    }

    /// What was found, the first hundred.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// How many were found.
    #[must_use]
    pub fn violation_count(&self) -> u64 {
        self.violation_count
    }

    /// Visitors with a valid ticket who were refused.
    #[must_use]
    pub fn thrown_out(&self) -> u64 {
        self.thrown_out
    }

    /// The highest limits that any node has from now on.
    pub(crate) fn handle_limits(&mut self, highest: Limits, now: Timestamp) {
        self.seats.handle_limit(highest.total_active_users, now);
        self.rate.handle_limit(highest.new_users_per_minute, now);
    }

    /// Something goes wrong, and may have effects until then.
    pub(crate) fn handle_trouble(&mut self, until: Timestamp, is_far_away: bool) {
        self.trouble_until = self.trouble_until.max(until);
        if !is_far_away {
            self.upset_until = self.upset_until.max(until);
        }
    }

    /// How much later something may come about than near the root and by clocks that agree.
    pub(crate) fn slack(&self) -> DurationMs {
        self.slack
    }

    pub(crate) fn is_calm(&self, now: Timestamp) -> bool {
        now >= self.trouble_until
    }

    /// Whether this is a new admission and not the second answer to one.
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

    /// Somebody was let in by `node`, under the limits or outside them.
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
            // Another person to all who count: the seat of the former one runs on.
            *watched = Watched {
                id: Some(ticket.visitor),
                last_request_at: now,
                is_steady: true,
                is_uncounted,
                ..Watched::default()
            };
        }
        watched.accepted_at = accepted_at;
        watched.accepted_by = node;
        self.recovery.handle_admission(now);
        self.handle_ticket(watched, ticket, now);
        if is_uncounted {
            return;
        }
        let (count, limit) = self.rate.count(accepted_at.minute());
        if count > limit && self.has_promised_limits {
            self.report(Promise::Rate, now, || {
                format!("admission {count} of a minute that has {limit}")
            });
        }
    }

    /// Somebody got a ticket that is good for longer.
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
        if inside > most && self.has_promised_limits {
            self.report(Promise::Seats, now, || {
                format!("{inside} inside where {most} may be")
            });
        }
    }

    /// A node said that it ended the session of a ticket that is nobody's present one.
    pub(crate) fn handle_stray_log_out(&mut self, visitor: VisitorId, now: Timestamp) {
        self.logged_out.insert(visitor);
        if let Some(ends_at) = self.strays.remove(&visitor)
            && ends_at > now
        {
            self.seats.handle_leave(ends_at, now);
        }
    }

    /// Somebody was let in of whom no visitor's notes will tell.
    pub(crate) fn note_stray(&mut self, ticket: &Ticket, now: Timestamp) {
        self.strays.retain(|_, ends_at| *ends_at > now);
        if let Some(ends_at) = ticket.seats.ends_at() {
            self.strays.insert(ticket.visitor, ends_at);
        }
    }

    /// Whether a node said that it ended the session of this visitor.
    pub(crate) fn is_logged_out(&self, visitor: VisitorId) -> bool {
        self.logged_out.contains(&visitor)
    }

    /// A node said that it ended the session.
    pub(crate) fn handle_log_out(&mut self, watched: &mut Watched, now: Timestamp) {
        if !watched.is_uncounted && !watched.is_logged_out {
            self.seats.handle_leave(watched.ends_at, now);
        }
        watched.is_logged_out = true;
    }

    /// Somebody passed whose session was ended: a node has not heard of it, and as long as that may
    /// be its seat must not be somebody else's.
    pub(crate) fn check_passed_after_logout(&mut self, accepted_at: Timestamp, now: Timestamp) {
        let inside = self.seats.inside(now) + 1;
        // After a lowering more may be inside, if they were before; this one may have been.
        let was_lowered = self.seats.lowered_at() >= accepted_at;
        let most = self.seats.most() + u32::from(was_lowered);
        if inside > most && self.has_promised_limits {
            self.report(Promise::Seats, now, || {
                format!("with one who had logged out {inside} inside where {most} may be")
            });
        }
    }

    fn report(&mut self, promise: Promise, now: Timestamp, seen: impl FnOnce() -> String) {
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
