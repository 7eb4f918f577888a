//! Promise 6: a fault ends. Leases come back, intervals are freed, admissions go on.

use anteroom_room::id::DataCenterId;
use anteroom_room::ledger::Ledger;
use anteroom_room::time::{DurationMs, Timestamp};

use super::Checkers;
use crate::outcome::Promise;

/// How long nobody may be let in although somebody waits and there is room. Those far back ask
/// once a minute, and a room of one admission a minute gives it at the minute's end.
const STUCK: DurationMs = DurationMs::from_secs(150);

/// How long free slots may go unnoticed by those who are asked for one: two periods of each level,
/// and the time until those who are called ask.
const SPARE: DurationMs = DurationMs::from_secs(6);

/// How long free slots may be kept for those at the front of the line if none of them takes one:
/// they ask every second or two, and whoever does not come then has left.
const HELD_BACK: DurationMs = DurationMs::from_secs(8);

/// What is seen once a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a> {
    /// The ledger that lends and borrows nothing.
    pub(crate) root: &'a Ledger,
    /// Seats that data centers keep for visitors who are inside and lack one where they are now.
    pub(crate) kept_for_movers: u32,
    /// Visitors who still ask.
    pub(crate) asking: u32,
    /// The rules let somebody in at all at present.
    pub(crate) is_open: bool,
    /// How long a seat that has ended may still be counted.
    pub(crate) given_back_within: DurationMs,
    /// No ticket is counted twice in this scenario: by visits to several data centers, copies of
    /// waiting tickets and the like.
    pub(crate) is_simple: bool,
}

impl Sample<'_> {
    /// Whether more slots are free than there are people who ask for one.
    fn has_spare_slots(self, now: Timestamp) -> bool {
        let snapshot = self.root.snapshot(DataCenterId(1), now);
        let slots = snapshot.seats_free.min(snapshot.admissions_free);
        // One or two may be counted who have just gone in, or left.
        slots > self.asking.saturating_add(2)
    }
}

/// How long nothing has gone on.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    idle_since: Option<Timestamp>,
    /// Since when more slots have been free than there are people who ask.
    spare_since: Option<Timestamp>,
    /// Since when there has been a slot to lend and nobody was let in.
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
    /// When somebody was let in last.
    pub(crate) fn newest_admission(&self) -> Option<Timestamp> {
        self.recovery.admitted_at
    }

    /// Looks whether admissions go on, once a second.
    pub(crate) fn check_progress(&mut self, glance: Sample<'_>, now: Timestamp) {
        self.check_drift(glance, now);
        self.watch_spare_slots(glance, now);
        self.watch_unused_slots(glance, now);
        let has_room = self.has_room(glance, now);
        let should_go_on =
            self.has_promised_limits && self.is_calm(now) && glance.is_open && glance.asking > 0;
        if !(should_go_on && has_room) {
            self.recovery.idle_since = None;
            return;
        }
        let since = *self.recovery.idle_since.get_or_insert(now);
        if now.since(since) >= STUCK + self.slack() && !self.recovery.has_complained {
            self.recovery.has_complained = true;
            let asking = glance.asking;
            self.report(Promise::Recovery, now, || {
                format!("nobody let in for {STUCK} although there is room and {asking} wait")
            });
        }
    }

    fn has_room(&self, glance: Sample<'_>, now: Timestamp) -> bool {
        let root = glance.root;
        let taken = root.inside().saturating_add(root.phantoms());
        // Seats that visitors who are inside lack where they are now come first, and some are with
        // their data centers already.
        let wants = root.unmet();
        let taken = taken.saturating_add(wants.first.saturating_add(wants.later));
        let taken = taken.saturating_add(glance.kept_for_movers);
        let admitted = root.admitted_in(now.minute());
        // While files differ the lowest limits hold.
        let Some(limits) = root.terms().map(|terms| terms.limits) else {
            return false;
        };
        let seats = limits.total_active_users.min(self.seats.limit());
        let rate = limits.new_users_per_minute.min(self.rate.limit());
        root.reserve().is_none() && taken < seats && admitted < rate
    }

    /// Compares the ledger with what is really inside, when a run is over and calm.
    pub(crate) fn check_counts(&mut self, glance: Sample<'_>, now: Timestamp) {
        if !self.has_promised_limits || !self.is_calm(now) {
            return;
        }
        let root = glance.root;
        if root.reserve().is_some() || root.phantoms() > 0 {
            let phantoms = root.phantoms();
            self.report(Promise::Recovery, now, || {
                format!("{phantoms} seats are still counted for nobody")
            });
        }
    }

    /// Compares what the root counts with who is inside: at every step, for a seat that it does not
    /// count it will grant to somebody else.
    pub(crate) fn check_root(&mut self, root: &Ledger, now: Timestamp) {
        if !self.has_promised_limits || root.reserve().is_some() || root.terms().is_none() {
            return;
        }
        let inside = u64::from(self.seats.inside(now));
        let counted = u64::from(root.inside()) + u64::from(root.phantoms()) + root.seats_lent();
        if counted < inside {
            self.report(Promise::Seats, now, || {
                format!("the root counts {counted} seats where {inside} are taken")
            });
        }
    }

    /// Compares what the ledger counts with who is inside, once a second: never for long is a seat
    /// counted twice.
    fn check_drift(&mut self, glance: Sample<'_>, now: Timestamp) {
        if !(glance.is_simple && self.has_promised_limits && self.is_calm(now)) {
            return;
        }
        let given_back_within = glance.given_back_within + self.slack();
        let inside = self.seats.inside_lately(given_back_within, now);
        let counted = glance.root.inside();
        if counted > inside {
            self.report(Promise::Recovery, now, || {
                format!("the ledger counts {counted} inside where {inside} are or were just now")
            });
        }
    }

    /// Whether more slots have been free for a while than there are people who ask for one.
    fn watch_spare_slots(&mut self, glance: Sample<'_>, now: Timestamp) {
        if glance.has_spare_slots(now) && glance.is_simple && self.is_calm(now) {
            self.recovery.spare_since.get_or_insert(now);
        } else {
            self.recovery.spare_since = None;
        }
    }

    fn watch_unused_slots(&mut self, glance: Sample<'_>, now: Timestamp) {
        let root = glance.root;
        let at = root.heard_at();
        let has_slot = root.seats_to_admit() > 0 && root.admissions_free(at, at.minute()) > 0;
        // Where nobody asks, a slot is kept for nobody.
        let may_go_on = glance.is_open && glance.asking > 0 && self.is_calm(now);
        if has_slot && may_go_on {
            self.recovery.unused_since.get_or_insert(now);
        } else {
            self.recovery.unused_since = None;
        }
    }

    /// Somebody who is called came, waited as long as visitors wait for the root, and got no slot.
    /// Slots are not kept for people who do not come.
    pub(crate) fn handle_called_in_vain(&mut self) {
        self.recovery.unused_since = None;
    }

    /// Somebody who waits was told that others are to go first.
    pub(crate) fn check_held_back(&mut self, now: Timestamp) {
        let since = self.recovery.unused_since;
        if since.is_some_and(|since| now.since(since) >= HELD_BACK + self.slack())
            && self.has_promised_limits
        {
            self.report(Promise::NoWaste, now, || {
                format!("slots were kept for {HELD_BACK} for people who did not come for them")
            });
        }
    }

    /// A newcomer was told that others are to go first.
    pub(crate) fn check_turned_away(&mut self, glance: Sample<'_>, now: Timestamp) {
        // Others may have taken them since it was looked at last.
        let since = self.recovery.spare_since;
        let since = since.filter(|_| glance.has_spare_slots(now));
        if since.is_some_and(|since| now.since(since) >= SPARE + self.slack())
            && self.has_promised_limits
        {
            self.report(Promise::NoWaste, now, || {
                "a newcomer was told to wait for others, of whom there are none".to_owned()
            });
        }
    }
}
