//! What a ledger can tell about its room.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::closing::CLOCKS_APART;
use super::lend::saturating_u32;
use super::{DepartedChild, Ledger, Upstream};
use crate::estimate::{ASK_AFTER_FIRST, LOOK_AHEAD};
use crate::id::DataCenterId;
use crate::order::ROUND;
use crate::sync::{RoomFacts, Snapshot};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::watermark::{WaitingCounts, Watermark};

impl Ledger {
    /// Visitors inside, as far as reported.
    #[must_use]
    pub fn inside(&self) -> u32 {
        let total = self.sums.row.total_after(Timestamp::ZERO);
        u32::try_from(total.max(0)).unwrap_or(u32::MAX)
    }

    /// Seats that departed children may have given without a word.
    #[must_use]
    pub fn phantoms(&self) -> u32 {
        let may_run = |gone: &&DepartedChild| {
            gone.phantoms > 0 && gone.ends_at > self.closed_through(gone.data_center)
        };
        let phantoms = self.departed.iter().filter(may_run);
        phantoms.fold(0, |sum, gone| sum.saturating_add(gone.phantoms))
    }

    /// Seats lent and, as far as known, unused.
    #[must_use]
    pub fn seats_lent(&self) -> u64 {
        self.sums.seats_held
    }

    /// Admissions used in `minute`; what departed children held counts as used.
    #[must_use]
    pub fn admitted_in(&self, minute: Minute) -> u32 {
        self.sums.admitted.get(&minute).copied().unwrap_or(0)
    }

    /// Who waits, by rank.
    #[must_use]
    pub fn waiting(&self) -> &WaitingCounts {
        &self.sums.waiting
    }

    /// Who waits, in all.
    #[must_use]
    pub fn waiting_total(&self) -> u32 {
        self.sums.waiting_total
    }

    /// Everything, as `data_center` should see it. `now` by the ledger's own clock.
    #[must_use]
    pub fn snapshot(&self, data_center: DataCenterId, now: Timestamp) -> Snapshot {
        self.snapshot_at(data_center, self.heard_at, now)
    }

    /// The same for somebody whose clock shows `at`.
    pub(super) fn snapshot_at(
        &self,
        data_center: DataCenterId,
        at: Timestamp,
        now: Timestamp,
    ) -> Snapshot {
        let here = Here::of(self, data_center, at);
        let Some(upstream) = &self.upstream else {
            return self.own_snapshot(&here);
        };
        let is_known = upstream.is_snapshot_fresh(now) && upstream.lease.is_live(at);
        if is_known {
            below(&here, upstream, now)
        } else {
            self.cut_off(&here, upstream, now)
        }
    }

    fn own_snapshot(&self, here: &Here) -> Snapshot {
        let at = here.as_of;
        let slots = self.slots_before(at + ASK_AFTER_FIRST, at);
        Snapshot {
            as_of: at,
            root_as_of: at,
            watermark: Watermark::of(&self.sums.waiting, slots),
            slots,
            slots_in_round: self.slots_before(at + ROUND, at),
            slots_ahead: LOOK_AHEAD.map(|after| self.slots_ahead(at + after, at)),
            next_free_at: self.next_free_at(at),
            slots_to_spare: slots.saturating_sub(self.waiting_total()),
            inside: self.inside(),
            phantoms: self.phantoms(),
            lent: saturating_u32(self.seats_lent()),
            seats_free: here.seats_free,
            seats_owed: saturating_u32(self.sums.unmet().claims()),
            admissions_free: here.admissions_free,
            admitted: self.sums.admitted.iter().map(|(&m, &n)| (m, n)).collect(),
            waiting: self.waiting_total(),
            line: self.sums.line(),
            closed_through: here.closed_through,
            epoch: self.epoch(),
            reopens_at: self.reserve.map(|reserve| reserve.ends_at),
            nodes: self.sums.nodes,
            nodes_here: here.nodes,
            traffic: self.traffic(at.minute().previous()),
            longest_known: here.longest_known,
            closing_lag: here.closing_lag,
            refused_through: self.logouts.refused_through,
        }
    }

    /// What a data center tells its nodes that has not heard from the world lately: it goes by what
    /// it has itself.
    fn cut_off(&self, here: &Here, upstream: &Upstream, now: Timestamp) -> Snapshot {
        let root = &upstream.snapshot;
        let own = self.own_snapshot(here);
        Snapshot {
            // As old as what was heard last, so that nodes ask before they refuse anybody.
            as_of: own.as_of - now.since(upstream.snapshot_at),
            root_as_of: root.root_as_of,
            epoch: root.epoch,
            reopens_at: root.reopens_at,
            nodes: root.nodes.max(own.nodes),
            traffic: root.traffic.clone(),
            refused_through: root.refused_through,
            ..own
        }
    }

    /// Slots for those who wait until `soon`, by when those who are called now have asked: seats
    /// free, or lent and unused, or about to end, as far as the minute's admissions allow.
    fn slots_before(&self, soon: Timestamp, at: Timestamp) -> u32 {
        let minute = at.minute();
        if let Some(upstream) = &self.upstream {
            // What it has, for as long as it has it.
            if !upstream.lease.is_live(at) {
                return 0;
            }
            let pool = upstream.lease.held();
            let seats = u64::from(self.seats_to_admit()) + self.seats_lent();
            let admissions = self.admissions_lent(minute) + u64::from(pool.admissions_of(minute));
            return saturating_u32(seats.min(admissions));
        }
        let Some(terms) = self.terms.filter(|_| self.reserve.is_none()) else {
            return 0;
        };
        let seats = self.seats_before(soon, terms);
        let used = u64::from(self.admitted_in(minute));
        let admissions = self.admissions_allowed(soon, minute).saturating_sub(used);
        saturating_u32(seats.min(admissions))
    }

    /// The same for when they ask later: a minute that begins until then brings admissions of its
    /// own.
    fn slots_ahead(&self, later: Timestamp, at: Timestamp) -> u32 {
        let Some(terms) = self.terms.filter(|_| self.reserve.is_none()) else {
            return 0;
        };
        if self.upstream.is_some() || later.minute() == at.minute() {
            return self.slots_before(later, at);
        }
        let seats = self.seats_before(later, terms);
        saturating_u32(seats.min(terms.limits.new_users_per_minute.into()))
    }

    /// Seats that nobody has, or that end until then.
    fn seats_before(&self, soon: Timestamp, terms: RoomFacts) -> u64 {
        let ending = self.sums.row.between(Timestamp::ZERO, soon);
        let ending = u64::try_from(ending).unwrap_or(0);
        let taken = u64::from(self.inside()) + u64::from(self.phantoms());
        let taken = taken + self.sums.unmet().claims();
        (u64::from(terms.limits.total_active_users) + ending).saturating_sub(taken)
    }

    /// When the next seat that ends can be lent: when all clocks have passed its end, and all nodes
    /// have said so.
    fn next_free_at(&self, at: Timestamp) -> Timestamp {
        let apart = if self.sums.data_centers() > 1 {
            CLOCKS_APART
        } else {
            DurationMs::ZERO
        };
        let late = apart + TOLD_AFTER;
        self.sums.row.next_end(at - late) + late
    }

    /// Admissions of a minute by data center, if the allocation asks for them.
    fn traffic(&self, minute: Minute) -> Arc<Vec<(DataCenterId, u32)>> {
        if !self.terms.is_some_and(|terms| terms.needs_traffic) {
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

/// How long after an interval has ended all nodes have said so, and the world has heard of it: a
/// period of theirs and a trip.
const TOLD_AFTER: DurationMs = DurationMs(350);

/// For how long nobody asks the world again that had nothing left: two in a second for those whose
/// turn it is, and no more, however many they are.
const DRY_FOR: DurationMs = DurationMs(500);

/// What only the ledger itself can tell, be the world known or not.
struct Here {
    as_of: Timestamp,
    closed_through: Timestamp,
    closing_lag: DurationMs,
    nodes: u32,
    seats_free: u32,
    admissions_free: u32,
    longest_known: DurationMs,
}

impl Here {
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

/// What a data center tells its nodes while the world is known: what that said, and what is at hand
/// here on top.
fn below(here: &Here, upstream: &Upstream, now: Timestamp) -> Snapshot {
    let root = &upstream.snapshot;
    let is_news = now.since(upstream.snapshot_at) < DRY_FOR;
    let is_same_minute = root.as_of.minute() == here.as_of.minute();
    let seats_above = root.seats_free.max(u32::from(!is_news));
    let at_least = u32::from(!(is_news && is_same_minute));
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
