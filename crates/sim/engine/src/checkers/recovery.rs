//! Checker of invariant 6: after a fault, leases are returned, intervals are freed, and admissions
//! continue.

use anteroom_room::id::DataCenterId;
use anteroom_room::ledger::Ledger;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Checkers;
use crate::outcome::Invariant;

/// Longest time without an admission although visitors wait and there is room. Visitors far back
/// poll once a minute, and a room of one admission a minute grants it at the minute's end.
const STUCK: DurationMs = DurationMs::from_secs(150);

/// Longest time until nodes learn of free slots: two periods of each level, and the time until
/// eligible visitors poll.
const SPARE: DurationMs = DurationMs::from_secs(6);

/// Longest time for which free slots may be reserved for the front of the queue although none of
/// its visitors takes one. Without an interval of the room's own they poll every second or two; a
/// visitor who sends nothing for longer has left.
const RESERVED_MAX: DurationMs = DurationMs::from_secs(8);

/// State of the room once a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation<'a> {
    /// Root ledger.
    pub(crate) root: &'a Ledger,
    /// Seats that data centers reserve for active visitors who have no seat in their present data
    /// center.
    pub(crate) kept_for_movers: u32,
    /// Number of waiting visitors who still poll.
    pub(crate) asking: u32,
    /// Whether the rules admit visitors at present.
    pub(crate) is_open: bool,
    /// Longest time for which a ledger may count a seat after its end.
    pub(crate) given_back_within: DurationMs,
    /// Whether no ticket can be counted twice in this scenario: no visits to several data centers,
    /// no copies of waiting tickets, and so on.
    pub(crate) is_simple: bool,
}

impl Observation<'_> {
    /// Whether more slots are free than visitors request.
    fn has_spare_slots(self, now: Timestamp) -> bool {
        let snapshot = self.root.snapshot(DataCenterId(1), now);
        let slots = snapshot.seats_free.min(snapshot.admissions_free);
        // One or two of them may just have been admitted or have left.
        slots > self.asking.saturating_add(2)
    }
}

/// Whether a ledger grants slots.
fn is_open(root: &Ledger) -> bool {
    root.reserve().is_none() && root.probation().is_none()
}

/// Times since which the room has made no progress.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    idle_since: Option<Timestamp>,
    /// Time since which more slots have been free than visitors request.
    spare_since: Option<Timestamp>,
    /// Time since which a slot has been free without an admission.
    unused_since: Option<Timestamp>,
    has_complained: bool,
    admitted_at: Option<Timestamp>,
}

impl Recovery {
    pub(super) fn handle_admission(&mut self, now: Timestamp) {
        self.admitted_at = Some(now);
        self.idle_since = None;
        self.unused_since = None;
        self.has_complained = false;
    }
}

impl Checkers {
    /// Returns the time of the newest admission.
    pub(crate) fn newest_admission(&self) -> Option<Timestamp> {
        self.recovery.admitted_at
    }

    /// Checks once a second that admissions continue.
    pub(crate) fn check_progress(&mut self, observation: Observation<'_>, now: Timestamp) {
        self.check_drift(observation, now);
        self.watch_spare_slots(observation, now);
        self.watch_unused_slots(observation, now);
        let has_room = self.has_room(observation, now);
        let should_go_on =
            self.keeps_limits && self.is_calm(now) && observation.is_open && observation.asking > 0;
        if !(should_go_on && has_room) {
            self.recovery.idle_since = None;
            return;
        }
        let since = *self.recovery.idle_since.get_or_insert(now);
        if now.since(since) >= STUCK + self.slack() && !self.recovery.has_complained {
            self.recovery.has_complained = true;
            let asking = observation.asking;
            self.report(Invariant::Recovery, now, || {
                format!("no admission for {STUCK}: {asking} visitors wait and there is room")
            });
        }
    }

    fn has_room(&self, observation: Observation<'_>, now: Timestamp) -> bool {
        let root = observation.root;
        let taken = root.active().saturating_add(root.phantoms());
        // Seats for active visitors who lack one in their present data center come first; some are
        // at their data centers already.
        let wants = root.unmet();
        let taken = taken.saturating_add(wants.movers_now.saturating_add(wants.movers_expected));
        let taken = taken.saturating_add(observation.kept_for_movers);
        let admitted = root.admitted_in(now.minute());
        // While config files differ the lowest limits hold.
        let Some(limits) = root.terms().map(|terms| terms.limits) else {
            return false;
        };
        let seats = limits.total_active_users.min(self.seats.limit());
        let rate = limits.new_users_per_minute.min(self.rate.limit());
        is_open(root) && taken < seats && admitted < rate
    }

    /// Compares the ledger with the true count of active visitors, at the end of a run without
    /// faults.
    pub(crate) fn check_counts(&mut self, observation: Observation<'_>, now: Timestamp) {
        if !self.keeps_limits || !self.is_calm(now) {
            return;
        }
        let root = observation.root;
        if !is_open(root) || root.phantoms() > 0 {
            let phantoms = root.phantoms();
            self.report(Invariant::Recovery, now, || {
                format!("{phantoms} phantom seats are still counted")
            });
        }
    }

    /// Compares the root's count with the active visitors after every write. The root could grant a
    /// seat again that it does not count.
    pub(crate) fn check_root(&mut self, root: &Ledger, now: Timestamp) {
        if !self.keeps_limits || !is_open(root) || root.terms().is_none() {
            return;
        }
        let inside = u64::from(self.seats.inside(now));
        let counted = u64::from(root.active()) + u64::from(root.phantoms()) + root.seats_leased();
        if counted < inside {
            self.report(Invariant::Seats, now, || {
                format!("the root counts {counted} seats, and {inside} are taken")
            });
        }
    }

    /// Compares the ledger's count with the active visitors once a second, so that a seat counted
    /// twice is found.
    fn check_drift(&mut self, observation: Observation<'_>, now: Timestamp) {
        if !(observation.is_simple && self.keeps_limits && self.is_calm(now)) {
            return;
        }
        let given_back_within = observation.given_back_within + self.slack();
        let inside = self.seats.inside_lately(given_back_within, now);
        let counted = observation.root.active();
        if counted > inside {
            self.report(Invariant::Recovery, now, || {
                format!("the ledger counts {counted} active visitors, and there are {inside}")
            });
        }
    }

    /// Notes the time since which more slots have been free than visitors request.
    fn watch_spare_slots(&mut self, observation: Observation<'_>, now: Timestamp) {
        if observation.has_spare_slots(now) && observation.is_simple && self.is_calm(now) {
            self.recovery.spare_since.get_or_insert(now);
        } else {
            self.recovery.spare_since = None;
        }
    }

    fn watch_unused_slots(&mut self, observation: Observation<'_>, now: Timestamp) {
        let root = observation.root;
        let at = root.clock_at();
        let has_slot = root.seats_to_admit() > 0 && root.admissions_free(at, at.minute()) > 0;
        // Without requests the root reserves no slot.
        let may_go_on = observation.is_open && observation.asking > 0 && self.is_calm(now);
        if has_slot && may_go_on {
            self.recovery.unused_since.get_or_insert(now);
        } else {
            self.recovery.unused_since = None;
        }
    }

    /// Records that an eligible visitor polled, waited as long as visitors wait for the root, and
    /// got no slot. Slots are then not reserved for absent visitors.
    pub(crate) fn handle_slot_missed(&mut self) {
        self.recovery.unused_since = None;
    }

    /// Records that the first visitor of the queue has left without a word. The slot is reserved
    /// for it for a while, and for the next one only from then on: in a small room several may
    /// leave one after the other, each when its turn has come.
    pub(crate) fn handle_first_left(&mut self, now: Timestamp) {
        if let Some(since) = &mut self.recovery.unused_since {
            *since = now;
        }
    }

    /// Checks a waiting visitor who was queued because others go first.
    pub(crate) fn check_held_back(&mut self, now: Timestamp) {
        let since = self.recovery.unused_since;
        let longest = RESERVED_MAX.max(self.overdue_after) + self.slack();
        if since.is_some_and(|since| now.since(since) >= longest) && self.keeps_limits {
            self.report(Invariant::NoWaste, now, || {
                format!("slots were reserved for {longest} for visitors who did not poll")
            });
        }
    }

    /// Checks a new visitor who was queued because others go first.
    pub(crate) fn check_queued_newcomer(&mut self, observation: Observation<'_>, now: Timestamp) {
        // Other visitors may have taken them since the last observation.
        let since = self.recovery.spare_since;
        let since = since.filter(|_| observation.has_spare_slots(now));
        if since.is_some_and(|since| now.since(since) >= SPARE + self.slack()) && self.keeps_limits
        {
            self.report(Invariant::NoWaste, now, || {
                "a new visitor was queued behind waiting visitors, and there are none".to_owned()
            });
        }
    }
}
