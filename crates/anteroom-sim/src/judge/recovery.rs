//! Promise 6: a fault ends. Leases come back, intervals are freed, admissions go on.

use anteroom_core::ledger::Ledger;
use anteroom_core::time::{Millis, Span};

use super::Judge;
use crate::outcome::Promise;

/// How long nobody may be let in although somebody waits and there is room. Those far back ask
/// once a minute, and a room of one admission a minute gives it at the minute's end.
const STUCK: Span = Span::from_secs(150);

/// What is seen once a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance<'a> {
    /// The ledger that lends and borrows nothing.
    pub(crate) root: &'a Ledger,
    /// Visitors who still ask.
    pub(crate) asking: u32,
    /// The rules let somebody in at all at present.
    pub(crate) is_open: bool,
    /// No ticket is counted twice in this scenario: by visits to several data centers, copies of
    /// waiting tickets and the like.
    pub(crate) is_simple: bool,
}

/// How long nothing has gone on.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    idle_since: Option<Millis>,
    has_complained: bool,
}

impl Recovery {
    pub(super) fn handle_admission(&mut self) {
        self.idle_since = None;
        self.has_complained = false;
    }
}

impl Judge {
    /// Looks whether admissions go on, once a second.
    pub(crate) fn check_progress(&mut self, glance: Glance<'_>, now: Millis) {
        let has_room = self.has_room(glance.root, now);
        let should_go_on =
            self.has_promised_limits && self.is_calm(now) && glance.is_open && glance.asking > 0;
        if !(should_go_on && has_room) {
            self.recovery.idle_since = None;
            return;
        }
        let since = *self.recovery.idle_since.get_or_insert(now);
        if now.since(since) >= STUCK && !self.recovery.has_complained {
            self.recovery.has_complained = true;
            let asking = glance.asking;
            self.report(Promise::Recovery, now, || {
                format!("nobody let in for {STUCK} although there is room and {asking} wait")
            });
        }
    }

    fn has_room(&self, root: &Ledger, now: Millis) -> bool {
        let taken = root.inside().saturating_add(root.phantoms());
        let admitted = root.admitted_in(now.minute());
        root.reserve.is_none() && taken < self.seats.limit() && admitted < self.rate.limit()
    }

    /// Compares the ledger with what is really inside, when a run is over and calm.
    pub(crate) fn check_counts(&mut self, glance: Glance<'_>, now: Millis) {
        if !self.has_promised_limits || !self.is_calm(now) {
            return;
        }
        let inside = u64::from(self.seats.inside(now));
        let root = glance.root;
        let counted = u64::from(root.inside()) + u64::from(root.phantoms()) + root.seats_lent();
        if counted < inside {
            self.report(Promise::Recovery, now, || {
                format!("the ledger knows of {counted} seats and {inside} are taken")
            });
        }
        if root.reserve.is_some() || root.phantoms() > 0 {
            let phantoms = root.phantoms();
            self.report(Promise::Recovery, now, || {
                format!("{phantoms} seats are still counted for nobody")
            });
        }
        // Seats that end within the last interval may not be given back yet.
        let allowed = inside + inside / 20 + 5;
        if glance.is_simple && u64::from(root.inside()) > allowed {
            let counted = root.inside();
            self.report(Promise::Recovery, now, || {
                format!("the ledger counts {counted} inside where {inside} are")
            });
        }
    }
}
