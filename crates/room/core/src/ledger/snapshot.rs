//! Snapshot of a room, as its ledger sees it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::closing::CLOCKS_APART;
use super::grant::saturating_u32;
use super::{DepartedChild, Ledger, Upstream};
use crate::estimate::{LOOK_AHEAD, WATERMARK_AHEAD};
use crate::id::DataCenterId;
use crate::order::ROUND;
use crate::sync::{ClosedBy, RoomFacts, Snapshot};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::wait_forecast::END_PARTS;
use crate::watermark::{WaitingCounts, Watermark};

impl Ledger {
    /// Returns the active visitors, as far as reported.
    #[must_use]
    pub fn active(&self) -> u32 {
        let total = self.sums.row.total_after(Timestamp::ZERO);
        u32::try_from(total.max(0)).unwrap_or(u32::MAX)
    }

    /// Returns the seats that departed children may have given without a report.
    #[must_use]
    pub fn phantoms(&self) -> u32 {
        let may_run = |gone: &&DepartedChild| {
            gone.phantoms > 0 && gone.ends_at > self.closed_through(gone.data_center)
        };
        let phantoms = self.departed.iter().filter(may_run);
        phantoms.fold(0, |sum, gone| sum.saturating_add(gone.phantoms))
    }

    /// Returns the seats that are leased and, as far as known, unused.
    #[must_use]
    pub fn seats_leased(&self) -> u64 {
        self.sums.leased_seats
    }

    /// Returns the admissions of `minute`; the balances of departed children count as used.
    #[must_use]
    pub fn admitted_in(&self, minute: Minute) -> u32 {
        self.sums.admitted.get(&minute).copied().unwrap_or(0)
    }

    /// Returns the waiting visitors by rank.
    #[must_use]
    pub fn waiting(&self) -> WaitingCounts {
        self.sums.waiting.shown()
    }

    /// Returns the number of waiting visitors.
    #[must_use]
    pub fn waiting_total(&self) -> u32 {
        self.sums.waiting_total()
    }

    /// Returns the snapshot for `data_center`, at `now` by the ledger's own clock.
    #[must_use]
    pub fn snapshot(&self, data_center: DataCenterId, now: Timestamp) -> Snapshot {
        self.snapshot_at(data_center, self.clock_at, now)
    }

    /// Returns the snapshot for a child whose clock shows `at`.
    pub(super) fn snapshot_at(
        &self,
        data_center: DataCenterId,
        at: Timestamp,
        now: Timestamp,
    ) -> Snapshot {
        let here = LocalView::of(self, data_center, at);
        let is_known =
            |upstream: &Upstream| upstream.is_snapshot_fresh(now) && upstream.lease.is_live(at);
        let mut snapshot = match self.upstream.as_deref() {
            None => self.own_snapshot(&here),
            Some(upstream) if is_known(upstream) => snapshot_with_root(&here, upstream, now),
            Some(upstream) => self.snapshot_without_root(&here, upstream, now),
        };
        if let Some(reserve) = self.reserve {
            snapshot.close_until(reserve.ends_at, reserve.cause.into());
        }
        if let Some(at) = self.probation_ends_at() {
            let missing = u32::try_from(self.missing_reports()).unwrap_or(u32::MAX);
            snapshot.close_until(at, ClosedBy::MissingReports(missing));
        }
        snapshot
    }

    fn own_snapshot(&self, here: &LocalView) -> Snapshot {
        let at = here.as_of;
        let slots = self.slots_before(at + WATERMARK_AHEAD, at);
        Snapshot {
            as_of: at,
            root_as_of: at,
            watermark: Watermark::of(&self.waiting(), slots),
            slots,
            slots_in_round: self.slots_before(at + ROUND, at),
            slots_ahead: LOOK_AHEAD.map(|after| self.slots_ahead(at + after, at)),
            next_free_at: self.next_free_at(at),
            ends_ahead: self.ends_ahead(at),
            slots_to_spare: slots.saturating_sub(self.waiting_total()),
            active: self.active(),
            phantoms: self.phantoms(),
            leased: saturating_u32(self.seats_leased()),
            seats_free: here.seats_free,
            seats_owed: saturating_u32(self.sums.unmet().claims()),
            admissions_free: here.admissions_free,
            is_second_used_up: self.is_second_used_up(at),
            admitted: self.sums.admitted.iter().map(|(&m, &n)| (m, n)).collect(),
            waiting: self.waiting_total(),
            queue: self.sums.compact_queue(),
            closed_through: here.closed_through,
            epoch: self.epoch(),
            reopens_at: None,
            closed_by: None,
            nodes: self.sums.nodes,
            nodes_here: here.nodes,
            traffic: self.traffic(at.minute().previous()),
            longest_known: here.longest_known,
            closing_lag: here.closing_lag,
            rejected_through: self.logouts.rejected_through,
        }
    }

    /// Returns the snapshot of a data center without a recent reply of the root: it goes by its own
    /// ledger.
    fn snapshot_without_root(
        &self,
        here: &LocalView,
        upstream: &Upstream,
        now: Timestamp,
    ) -> Snapshot {
        let root = &upstream.snapshot;
        let own = self.own_snapshot(here);
        Snapshot {
            // Its age is that of the root's last reply, so that nodes sync before they reject
            // visitors.
            as_of: own.as_of - now.since(upstream.snapshot_at),
            root_as_of: root.root_as_of,
            epoch: root.epoch,
            reopens_at: root.reopens_at,
            closed_by: root.closed_by,
            nodes: root.nodes.max(own.nodes),
            traffic: root.traffic.clone(),
            rejected_through: root.rejected_through,
            ..own
        }
    }

    /// Returns the slots for waiting visitors until `soon`, by when those within the watermark have
    /// refreshed: seats free, or leased and unused, or about to end, as far as the minute's
    /// admissions allow.
    fn slots_before(&self, soon: Timestamp, at: Timestamp) -> u32 {
        let minute = at.minute();
        if let Some(upstream) = &self.upstream {
            // Its own balance, while its lease runs.
            if !upstream.lease.is_live(at) {
                return 0;
            }
            let pool = upstream.lease.balance();
            let seats = u64::from(self.seats_to_admit()) + self.seats_leased();
            let admissions = self.admissions_leased(minute) + u64::from(pool.admissions_of(minute));
            return saturating_u32(seats.min(admissions));
        }
        let Some(terms) = self.settings.filter(|_| self.is_open()) else {
            return 0;
        };
        let seats = self.seats_before(soon, terms);
        let used = u64::from(self.admitted_in(minute));
        let admissions = self.admissions_allowed(soon, minute).saturating_sub(used);
        let in_windows = self.admissions_in_windows_within(soon.since(at));
        saturating_u32(seats.min(admissions).min(in_windows))
    }

    /// Returns the slots for waiting visitors until `later`: a minute that begins until then brings
    /// its own admissions.
    fn slots_ahead(&self, later: Timestamp, at: Timestamp) -> u32 {
        let Some(terms) = self.settings.filter(|_| self.is_open()) else {
            return 0;
        };
        if self.upstream.is_some() || later.minute() == at.minute() {
            return self.slots_before(later, at);
        }
        let seats = self.seats_before(later, terms);
        let admissions = u64::from(terms.limits.new_users_per_minute);
        let in_windows = self.admissions_in_windows_within(later.since(at));
        saturating_u32(seats.min(admissions).min(in_windows))
    }

    /// Returns the seats that are neither taken nor owed, or that end until `soon`.
    fn seats_before(&self, soon: Timestamp, terms: RoomFacts) -> u64 {
        let ended_before = soon - self.usual_closing_lag();
        let ending = self.sums.row.between(Timestamp::ZERO, ended_before);
        let ending = u64::try_from(ending).unwrap_or(0);
        let taken = u64::from(self.active()) + u64::from(self.phantoms());
        let taken = taken + self.sums.unmet().claims();
        (u64::from(terms.limits.total_active_users) + ending).saturating_sub(taken)
    }

    /// Returns the time at which the next ending seat can be granted: all clocks have passed its
    /// end, and all nodes have reported it.
    fn next_free_at(&self, at: Timestamp) -> Timestamp {
        let late = self.usual_closing_lag();
        self.sums.row.next_end(at - late) + late
    }

    /// Returns the seats that end in each part of the longest seat from `at` on.
    fn ends_ahead(&self, at: Timestamp) -> [u32; END_PARTS] {
        let part = self.longest_seat.0.max(1) / END_PARTS as u64;
        let mut ends = [0i64; END_PARTS];
        for (end, count) in self.sums.row.iter() {
            let index = end.since(at).0.saturating_sub(1) / part.max(1);
            let index = usize::try_from(index).unwrap_or(END_PARTS);
            let slot = &mut ends[index.min(END_PARTS - 1)];
            *slot += count;
        }
        ends.map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX))
    }

    /// Returns the time from the end of a seat until it can be granted again, as a rule.
    fn usual_closing_lag(&self) -> DurationMs {
        let apart = if self.sums.data_centers() > 1 {
            CLOCKS_APART
        } else {
            DurationMs::ZERO
        };
        apart + CLOSING_DELAY
    }

    /// Returns the admissions of a minute by data center, if the allocation needs them.
    fn traffic(&self, minute: Minute) -> Arc<Vec<(DataCenterId, u32)>> {
        if !self.settings.is_some_and(|terms| terms.needs_traffic) {
            return Arc::default();
        }
        let mut sum: BTreeMap<DataCenterId, u32> = BTreeMap::new();
        let live = self
            .children
            .values()
            .map(|child| (child.data_center, &child.admitted));
        let gone = self
            .departed
            .iter()
            .map(|gone| (gone.data_center, &gone.admitted));
        for (data_center, admitted) in live.chain(gone) {
            let in_minute = admitted.iter().filter(|(known, _)| *known == minute);
            let count: u32 = in_minute.map(|(_, count)| count).sum();
            if count > 0 {
                *sum.entry(data_center).or_insert(0) += count;
            }
        }
        Arc::new(sum.into_iter().collect())
    }
}

/// Time after the end of an interval until all nodes have reported it to the root: a sync period
/// and a round trip.
const CLOSING_DELAY: DurationMs = DurationMs(350);

/// Pause of requests to a root that had nothing left: at most two a second, however many visitors
/// are within the watermark.
const EXHAUSTED_FOR: DurationMs = DurationMs(500);

/// Part of a snapshot that only the ledger itself knows, with or without the root.
struct LocalView {
    as_of: Timestamp,
    closed_through: Timestamp,
    closing_lag: DurationMs,
    nodes: u32,
    seats_free: u32,
    admissions_free: u32,
    longest_known: DurationMs,
}

impl LocalView {
    fn of(ledger: &Ledger, data_center: DataCenterId, at: Timestamp) -> Self {
        let members = ledger.sums.members(data_center).iter();
        let slowest = members.clone().map(|member| member.closed_through).min();
        Self {
            as_of: at,
            closed_through: ledger.closed_through(data_center),
            closing_lag: slowest.map_or(DurationMs::ZERO, |slowest| at.since(slowest)),
            nodes: members.fold(0u32, |sum, member| sum.saturating_add(member.nodes)),
            seats_free: ledger.seats_to_admit(),
            admissions_free: ledger.admissions_free(at, at.minute()),
            longest_known: ledger.longest_seat,
        }
    }
}

/// Returns the snapshot of a data center with a recent reply of the root: the root's snapshot, plus
/// the balance here.
fn snapshot_with_root(here: &LocalView, upstream: &Upstream, now: Timestamp) -> Snapshot {
    let root = &upstream.snapshot;
    let is_recent = now.since(upstream.snapshot_at) < EXHAUSTED_FOR;
    let is_same_minute = root.as_of.minute() == here.as_of.minute();
    let seats_above = root.seats_free.max(u32::from(!is_recent));
    let at_least = u32::from(!(is_recent && is_same_minute));
    let admissions_above = root.admissions_free.max(at_least);
    Snapshot {
        as_of: here.as_of,
        seats_free: here.seats_free.saturating_add(seats_above),
        admissions_free: here.admissions_free.saturating_add(admissions_above),
        closed_through: here.closed_through,
        nodes_here: here.nodes,
        longest_known: here.longest_known,
        closing_lag: here.closing_lag,
        ..root.clone()
    }
}
