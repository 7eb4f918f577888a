//! Requests of a data center's ledger to the root.

use alloc::vec::Vec;

use super::children::add_admissions;
use super::grant::saturating_u32;
use super::{LeaseTerms, Ledger};
use crate::id::{DataCenterId, NodeId};
use crate::seats::{SHORTEST_INTERVAL, SeatRow};
use crate::sync::{LeaseBalance, LeaseDemand, MINUTES_KEPT, SyncRequest};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::waiting::WaitingForecast;

/// Time before a minute begins at which its admissions are requested: enough for two upstream
/// syncs, and one that is lost.
pub(super) const GRANT_AHEAD: DurationMs = DurationMs(4_000);

/// Round trip to the root from which on slots are here before their visitors ask for them.
const FAR: DurationMs = DurationMs(200);

/// Slots kept for chance while visitors are active anywhere, beside those for recent traffic.
const CHANCE: u32 = 3;

/// Round trip to the root from which on its reports may be so far apart that visitors who refresh
/// every second run out in between.
const FAR_REPORTS: DurationMs = DurationMs(700);
/// Round trip below which they are not any more. One trip may be faster than the others.
const NEAR_REPORTS: DurationMs = DurationMs(400);

/// Fewest slots requested when the first visitors come and many are free: during a round trip many
/// more visitors come.
const GROWTH_MIN: u32 = 256;

impl Ledger {
    /// Makes the next request to the root. Returns `None` at the root, and before the first request
    /// of a node, when neither the time nor the settings are known; nor in a probation. Replies to
    /// earlier requests no longer count. Write the record before you send the request.
    pub fn poll_upstream(&mut self, now: Timestamp) -> Option<SyncRequest> {
        if self.probation.is_some() {
            return None;
        }
        self.advance(now);
        let settings = self.settings?;
        let minute = self.clock_at.minute();
        let leased = self.leased(minute);
        let row = self.reported_row();
        let admitted = self.reported_admissions(minute);
        let longest_seat = self.longest_issued();
        let keep = self.wanted_balance(minute, now)?;
        let claims = saturating_u32(self.sums.unmet().claims());
        let group_of = self.upstream.as_ref()?.data_center;
        let closed_through = self.treated_as_over(group_of);
        let (incarnation, at) = (self.incarnation, self.clock_at);
        let waiting = self.reported_waiting();
        self.note_rejections();
        self.assert_sound();
        let upstream = self.upstream.as_deref_mut()?;
        upstream.note_children_versions(&self.revoked, &self.logouts);
        upstream.lease.give_back(keep);
        upstream.lease.lower_longest_seat(longest_seat);
        upstream.requested_at = now;
        let number = upstream.lease.begin_request(at);
        let pool = upstream.lease.balance();
        let movers_reserved = claims.min(pool.seats);
        upstream.reported_nodes = self.sums.nodes;
        upstream.reported_closed = closed_through;
        upstream.has_freed = false;
        upstream.has_demand = !waiting.is_empty() || keep.seats > 0;
        let is_unused = leased.is_nothing();
        Some(SyncRequest {
            child: NodeId(incarnation.0),
            process: NodeId(incarnation.0),
            replaces: Vec::new(),
            data_center: upstream.data_center,
            sent_at: at,
            stamp: upstream.stamp(),
            is_of_ledger: true,
            is_join: false,
            known_closed: upstream.snapshot.closed_through,
            is_read_under_parent: upstream.is_read_under_parent,
            parent: upstream.parent,
            voided_by: None,
            witnessed_epoch: upstream.witness(),
            number,
            applied_reply: upstream.applied_reply,
            generation: upstream.lease.generation(),
            is_final: is_unused && !upstream.lease.is_live(at),
            balance: leased.plus(pool),
            demand: LeaseDemand {
                movers_now: claims - movers_reserved,
                movers_reserved,
                ..demand(keep, leased)
            },
            used: upstream.used,
            admitted,
            row,
            closed_through,
            longest_seat,
            longest_known: self.longest_seat,
            nodes: self.sums.nodes,
            waiting,
            revocations: upstream.unconfirmed.clone(),
            revoked_version: upstream.revoked_version,
            rejects_through: upstream.known_to_children,
            settings,
            is_leaving: false,
        })
    }

    /// Returns the waiting visitors of all children, now and later.
    fn reported_waiting(&mut self) -> WaitingForecast {
        self.follow_waiting();
        let children = self.children.values().map(|child| &child.waiting);
        let all = children.chain(self.departed.iter().map(|gone| &gone.waiting));
        let reports = all.map(|waiting| (&waiting.forecast, waiting.counted_at));
        let forecast = WaitingForecast::sum(reports, self.clock_at);
        let Some(upstream) = self.upstream.as_deref_mut() else {
            return forecast;
        };
        let least = if upstream.is_far {
            NEAR_REPORTS
        } else {
            FAR_REPORTS
        };
        upstream.is_far = upstream.round_trip >= least;
        let late = if upstream.is_far {
            upstream.timeout().times(2)
        } else {
            DurationMs::ZERO
        };
        forecast.with_late_reports(late)
    }

    /// Returns the longest seat that a child may give.
    fn longest_issued(&self) -> DurationMs {
        let children = self.children.values().map(|child| child.longest_seat);
        children
            .max()
            .unwrap_or_else(|| self.longest_grantable_seat())
    }

    /// Returns the end through which every process here treats tickets as over.
    fn treated_as_over(&self, data_center: DataCenterId) -> Timestamp {
        let group = self.groups.get(&data_center);
        let ready_through = group.map_or(Timestamp::ZERO, |group| group.ready_through);
        ready_through - self.unreported_lag()
    }

    /// Returns the balances of all children, with the admissions of `minute` and the next.
    fn leased(&self, minute: Minute) -> LeaseBalance {
        LeaseBalance {
            seats: saturating_u32(self.sums.leased_seats),
            admissions: saturating_u32(self.admissions_leased(minute)),
            next_minute: saturating_u32(self.admissions_leased(minute.next())),
            minute,
            credits: saturating_u32(self.sums.leased_credits),
        }
    }

    /// Returns how many slots to keep without a request for them, so that a newcomer seldom waits
    /// for a far round trip. As many as recent traffic used at its height, a few for chance, and
    /// twice what is missing, since beginning traffic grows. At most half of this data center's
    /// part of the free slots: it shrinks as the room fills. None while visitors wait.
    pub(super) fn spare_slots(&self, missing: u32) -> u32 {
        let Some(upstream) = self.upstream.as_deref() else {
            return 0;
        };
        let root = &upstream.snapshot;
        let height = upstream.demand.height.div_ceil(16);
        let is_calm = root.active == 0 && missing == 0;
        if is_calm || root.waiting > 0 || root.reopens_at.is_some() {
            return 0;
        }
        let growth = if missing > 0 {
            missing.saturating_mul(2).saturating_add(GROWTH_MIN)
        } else {
            0
        };
        let free = u64::from(root.seats_free.min(root.admissions_free));
        let part = free * u64::from(self.sums.nodes) / u64::from(root.nodes.max(1)) / 2;
        saturating_u32(part).min(growth.max(height + CHANCE))
    }

    /// Returns the balance to keep until the next reply: what is missing, and as much as was
    /// granted in the last period.
    fn wanted_balance(&mut self, minute: Minute, now: Timestamp) -> Option<LeaseBalance> {
        let unmet = self.unmet();
        let claims = unmet.movers_now.saturating_add(unmet.movers_expected);
        // Visitors who are admitted before the next reply are active as well.
        let may_be_active = self
            .active()
            .saturating_add(saturating_u32(self.seats_leased()));
        let expected = self.upstream.as_deref_mut()?.demand.expected(now);
        // Where one visitor lacks a slot, others will before the reply: a few more than are
        // missing.
        let root = self.upstream.as_deref().map(|up| &up.snapshot);
        let has_queue = root.is_some_and(|root| root.waiting > 0 && root.slots_to_spare == 0);
        let missing = if unmet.slots > 0 && !has_queue {
            unmet.slots / 2 + 2
        } else {
            0
        };
        // With a queue only visitors within the watermark enter, and their number is known.
        let eligible = match root.filter(|_| has_queue) {
            Some(root) => root.watermark.count(&self.waiting()),
            None => u32::MAX,
        };
        if self.children.is_empty() {
            return Some(LeaseBalance {
                minute,
                ..LeaseBalance::default()
            });
        }
        let ahead = missing.max(self.spare_slots(unmet.slots));
        let slots = expected.slots.min(eligible).saturating_add(unmet.slots);
        // Visitors within the watermark refresh within seconds, and do not wait for a far round
        // trip: their slots must be here by then, or go unused.
        let is_far = self
            .upstream
            .as_deref()
            .is_some_and(|up| up.round_trip >= FAR);
        let slots = if has_queue && is_far {
            slots.max(eligible)
        } else {
            slots
        };
        let slots = if self.owes_seats_to_others() {
            0
        } else {
            slots.saturating_add(ahead)
        };
        let credits = expected.credits.saturating_add(unmet.credits);
        Some(LeaseBalance {
            seats: slots.saturating_add(claims),
            admissions: slots,
            next_minute: if self.clock_at.until_next_minute() <= GRANT_AHEAD {
                slots
            } else {
                0
            },
            minute,
            credits: credits.max(self.credits_for_a_lease(may_be_active.saturating_add(slots))),
        })
    }

    /// Returns the credits that active visitors need while the root is unreachable, for as long as
    /// this lease runs. A cut link then ends no session. If this data center is lost, they count
    /// for no more seats than it has.
    fn credits_for_a_lease(&self, inside: u32) -> u32 {
        let longest = self
            .settings
            .map_or(DurationMs::ZERO, |terms| terms.longest_seat);
        // A seat is the session and two intervals long, and a session is sixty of those.
        let interval = (longest.0 / 62).max(SHORTEST_INTERVAL.0);
        let check_ins = LeaseTerms::ROOT.ttl.0 / interval + 2;
        saturating_u32(check_ins.saturating_mul(inside.into()))
    }

    /// Returns all seats that may be taken here, phantoms included: the root counts these.
    fn reported_row(&self) -> SeatRow {
        let mut row = self.sums.row.clone();
        for gone in self.departed.iter().filter(|gone| gone.phantoms > 0) {
            if gone.ends_at > self.closed_through(gone.data_center) {
                row.add_many(gone.ends_at, gone.phantoms);
            }
        }
        row
    }

    /// Returns the admissions by minute. The children's balances of other minutes than `held` and
    /// the next count as used until they have reported.
    fn reported_admissions(&self, held: Minute) -> Vec<(Minute, u32)> {
        let mut admitted: Vec<(Minute, u32)> =
            self.sums.admitted.iter().map(|(&m, &n)| (m, n)).collect();
        for child in self.children.values() {
            for (minute, count) in child.balance.by_minute() {
                if minute != held && minute != held.next() {
                    add_admissions(&mut admitted, minute, count);
                }
            }
        }
        admitted.sort_unstable();
        let excess = admitted.len().saturating_sub(MINUTES_KEPT);
        admitted.drain(..excess);
        admitted
    }
}

/// Returns the demand for the balance to keep and the children's balances.
fn demand(keep: LeaseBalance, leased: LeaseBalance) -> LeaseDemand {
    LeaseDemand {
        slots: keep.admissions.saturating_add(leased.seats),
        next_minute: keep.next_minute.saturating_add(leased.next_minute),
        credits: keep.credits.saturating_add(leased.credits),
        ..LeaseDemand::default()
    }
}
