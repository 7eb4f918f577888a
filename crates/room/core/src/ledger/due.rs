//! When is the world asked? Once a second while something happens, and sooner where somebody else
//! can be served by it.

use super::closing::CLOCKS_APART;
use super::{Ledger, Upstream};
use crate::sync::LeaseDemand;
use crate::time::{DurationMs, Timestamp};

/// Time between two requests to the world while something happens.
pub const UPSTREAM_PERIOD: DurationMs = DurationMs(1_000);
/// The same while sessions that were ended early are to free their seats for somebody who waits.
const UPSTREAM_NEWS: DurationMs = DurationMs(500);
/// The same while nobody is inside, waits or wants anything.
const UPSTREAM_PERIOD_IDLE: DurationMs = DurationMs::from_secs(10);
/// A request to the world that is not answered by then is lost, or whoever carried it is dead; at
/// least. A newer request voids the answer to an older one.
pub(super) const UPSTREAM_TIME_OUT: DurationMs = DurationMs(2_000);
/// The same at most.
pub const UPSTREAM_TIME_OUT_MAX: DurationMs = DurationMs(5_000);
/// So many trips as they took lately: a race that is lost costs another half.
const TRIPS_TO_TIME_OUT: u64 = 4;
/// Time between two requests on behalf of somebody who waits: what a busy evening may cost.
const UPSTREAM_HURRY: DurationMs = DurationMs(100);

impl Upstream {
    /// How long an answer of the world is waited for, before it is asked again.
    fn timeout(&self) -> DurationMs {
        let usual = self.trip.times(TRIPS_TO_TIME_OUT);
        usual.clamp(UPSTREAM_TIME_OUT, UPSTREAM_TIME_OUT_MAX)
    }
}

impl Ledger {
    /// Whether the world should be asked by whoever has this record in hand; `is_wanted`: somebody
    /// waits for what a child lacks. Never while another request is on its way: drawing one is what
    /// a lock with expiry would be, and whoever draws it carries it.
    #[must_use]
    pub fn is_upstream_due(&self, is_wanted: bool, now: Timestamp) -> bool {
        let Some(upstream) = self.upstream.as_deref() else {
            return false;
        };
        // A clock that was stepped back says nothing about when that was.
        let since = Some(now.since(upstream.asked_at)).filter(|_| now >= upstream.asked_at);
        let pause = if upstream.lease.is_waiting_for_answer() {
            upstream.timeout()
        } else if is_wanted && self.unmet() != LeaseDemand::default() {
            UPSTREAM_HURRY
        } else {
            self.upstream_period()
        };
        self.terms.is_some() && since.is_none_or(|since| since >= pause)
    }

    /// Whether somebody waits in the world, and for seats of sessions that were ended early: those
    /// are free when everybody has heard of it and has said so, which takes several requests.
    fn awaits_refusals(&self) -> bool {
        self.upstream.as_deref().is_some_and(|upstream| {
            let has_news = !upstream.unconfirmed.is_empty()
                || !self.logouts.unfreed.is_empty()
                || upstream.told < upstream.telling.0;
            has_news && upstream.snapshot.waiting > 0
        })
    }

    /// Whether seats have ended here, or were freed, and the world does not know it yet.
    fn may_free_seats(&self) -> bool {
        let Some(upstream) = self.upstream.as_deref() else {
            return false;
        };
        let group = self.groups.get(&upstream.data_center);
        let ready = group.map_or(Timestamp::ZERO, |group| group.ready_through);
        let end = self.sums.next_end_in(upstream.data_center);
        let has_freed = upstream.has_freed && upstream.snapshot.waiting > 0;
        // The world gives an interval back when all clocks have passed its end.
        let over = end + CLOCKS_APART;
        has_freed || (upstream.told_closed < over && over <= ready)
    }

    /// Whether children lack slots, and the world has some that nobody waits for, as far as is
    /// known: they are fetched before somebody has to wait for them.
    fn may_fetch_slots(&self) -> bool {
        let upstream = self.upstream.as_deref();
        let is_known = |up: &Upstream| up.is_snapshot_fresh(self.as_of);
        let lacking = self.unmet().slots;
        lacking > 0 && upstream.is_some_and(is_known) && self.spare_part(lacking) > 0
    }

    /// How long after the last request to the world the next one is due. Soon, if somebody else may
    /// be served by it; when the last child has left, all goes back at once.
    #[must_use]
    pub fn upstream_period(&self) -> DurationMs {
        let wants = self.unmet();
        if self.children.is_empty() || self.may_fetch_slots() || self.may_free_seats() {
            return UPSTREAM_HURRY;
        }
        if self.awaits_refusals() {
            return UPSTREAM_NEWS;
        }
        let has_news = |up: &Upstream| up.has_wished || up.told_nodes != self.sums.nodes;
        let is_idle = !self.upstream.as_deref().is_some_and(has_news)
            && self.sums.row.is_empty()
            && self.sums.waiting_total == 0
            && self.sums.seats_held == 0
            && wants == LeaseDemand::default()
            && self.seats_free() == 0;
        if is_idle {
            let upstream = self.upstream.as_ref();
            let left = upstream.map_or(DurationMs::ZERO, |up| {
                up.lease.ends_at().since(self.heard_at)
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
