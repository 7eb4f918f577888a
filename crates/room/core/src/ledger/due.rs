//! Time of the next upstream sync: once a second during activity, and sooner where it frees or
//! brings slots for waiting visitors.

use super::closing::CLOCKS_APART;
use super::{Ledger, Upstream};
use crate::sync::LeaseDemand;
use crate::time::{DurationMs, Timestamp};

/// Time between two upstream syncs during activity.
pub const UPSTREAM_PERIOD: DurationMs = DurationMs(1_000);
/// Time between two upstream syncs while visitors wait and revoked sessions are to free their
/// seats.
const UPSTREAM_PERIOD_REVOKED: DurationMs = DurationMs(500);
/// Time between two upstream syncs without active visitors, waiting visitors and demand.
const UPSTREAM_PERIOD_IDLE: DurationMs = DurationMs::from_secs(10);
/// Shortest timeout of an upstream sync: after it the request is lost, or the node that carried it
/// has ended. A newer request voids the reply to an older one.
pub(super) const UPSTREAM_TIME_OUT_MIN: DurationMs = DurationMs(2_000);
/// Longest timeout of an upstream sync.
pub const UPSTREAM_TIME_OUT_MAX: DurationMs = DurationMs(5_000);
/// Timeout in recent round trips: a lost race costs another half.
const TRIPS_PER_TIME_OUT: u64 = 4;
/// Time between two upstream syncs while a visitor waits for one: the highest load on the root.
const UPSTREAM_PERIOD_MIN: DurationMs = DurationMs(100);

impl Upstream {
    /// Returns the timeout of an upstream sync.
    pub(super) fn timeout(&self) -> DurationMs {
        let usual = self.round_trip.times(TRIPS_PER_TIME_OUT);
        usual.clamp(UPSTREAM_TIME_OUT_MIN, UPSTREAM_TIME_OUT_MAX)
    }
}

impl Ledger {
    /// Whether the node that has this record should sync with the root. `is_wanted`: a visitor
    /// waits for what a child lacks. Returns false while another request is pending: a pending
    /// request works like a lock with expiry, and the node that made it carries it.
    #[must_use]
    pub fn is_upstream_due(&self, is_wanted: bool, now: Timestamp) -> bool {
        let is_certain = self.probation.is_none();
        let Some(upstream) = self.upstream.as_deref().filter(|_| is_certain) else {
            return false;
        };
        let pause = if upstream.lease.is_waiting_for_reply() {
            upstream.timeout()
        } else if is_wanted && self.unmet() != LeaseDemand::default() {
            UPSTREAM_PERIOD_MIN
        } else {
            self.upstream_period()
        };
        let is_first = !upstream.lease.has_requested();
        self.settings.is_some() && (is_first || now.since(upstream.requested_at) >= pause)
    }

    /// Whether visitors wait for seats of revoked sessions. These are free when all nodes have
    /// reported that they reject the tickets, which takes several requests.
    fn awaits_rejections(&self) -> bool {
        self.upstream.as_deref().is_some_and(|upstream| {
            let has_unreported = !upstream.unconfirmed.is_empty()
                || !self.logouts.unfreed.is_empty()
                || upstream.known_to_children < upstream.pending_version.0;
            has_unreported && upstream.snapshot.waiting > 0
        })
    }

    /// Whether seats have ended here, or were freed, and the root does not know it yet.
    fn may_free_seats(&self) -> bool {
        let Some(upstream) = self.upstream.as_deref() else {
            return false;
        };
        let group = self.groups.get(&upstream.data_center);
        let ready = group.map_or(Timestamp::ZERO, |group| group.ready_through);
        let end = self.sums.next_end_in(upstream.data_center);
        let has_freed = upstream.has_freed && upstream.snapshot.waiting > 0;
        // The root frees an interval when all clocks have passed its end.
        let over = end + CLOCKS_APART;
        has_freed || (upstream.reported_closed < over && over <= ready)
    }

    /// Whether children lack slots, and the root has some that no visitor waits for, as far as
    /// known. They are requested before a visitor has to wait for them.
    fn may_request_slots(&self) -> bool {
        let upstream = self.upstream.as_deref();
        let is_known = |up: &Upstream| up.is_snapshot_fresh(self.as_of);
        let lacking = self.unmet().slots;
        lacking > 0 && upstream.is_some_and(is_known) && self.spare_slots(lacking) > 0
    }

    /// Returns the time between the last request to the root and the next. Short, if it may serve
    /// waiting visitors of other data centers; when the last child has left, all leases return at
    /// once.
    #[must_use]
    pub fn upstream_period(&self) -> DurationMs {
        let wants = self.unmet();
        if self.children.is_empty() || self.may_request_slots() || self.may_free_seats() {
            return UPSTREAM_PERIOD_MIN;
        }
        if self.awaits_rejections() {
            return UPSTREAM_PERIOD_REVOKED;
        }
        let has_unreported = |up: &Upstream| {
            let is_closed = !up.is_safe || up.snapshot.reopens_at.is_some();
            is_closed || up.has_demand || up.reported_nodes != self.sums.nodes
        };
        let is_idle = !self.upstream.as_deref().is_some_and(has_unreported)
            && self.sums.row.is_empty()
            && self.sums.waiting.is_empty()
            && self.sums.leased_seats == 0
            && wants == LeaseDemand::default()
            && self.seats_free() == 0;
        if is_idle {
            let upstream = self.upstream.as_ref();
            let left = upstream.map_or(DurationMs::ZERO, |up| {
                up.lease.ends_at().since(self.clock_at)
            });
            // Often enough that a short lease never ends.
            UPSTREAM_PERIOD_IDLE
                .min(DurationMs(left.0 / 3))
                .max(UPSTREAM_PERIOD)
        } else {
            UPSTREAM_PERIOD
        }
    }
}
