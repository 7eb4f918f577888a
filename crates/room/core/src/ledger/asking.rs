//! What a data center tells the world about itself.

use alloc::vec::Vec;

use super::children::add_admissions;
use super::lend::saturating_u32;
use super::{LeaseTerms, Ledger};
use crate::id::{DataCenterId, Incarnation, NodeId};
use crate::seats::{SHORTEST_INTERVAL, SeatRow};
use crate::sync::{LeaseBalance, LeaseDemand, MINUTES_KEPT, SyncRequest};
use crate::time::{DurationMs, Minute, Timestamp};

/// How long before a minute begins admissions of it are fetched from the world: time for two
/// errands before it, and one that is lost.
pub(super) const LENT_AHEAD: DurationMs = DurationMs(4_000);

/// A root to which a trip takes so long is not reached while a visitor waits for it.
const FAR: DurationMs = DurationMs(200);

/// Slots fetched at least when the first visitors come and there is plenty: a trip takes as long as
/// many more need to come.
const GROWTH_MIN: u32 = 256;

impl Ledger {
    /// Makes the next request to the world; `None` at the root, and before any node has spoken:
    /// then neither the time nor the terms are known. Answers to earlier ones no longer count. The
    /// record must be written before the request is sent.
    pub fn poll_upstream(&mut self, now: Timestamp) -> Option<SyncRequest> {
        self.advance(now);
        let terms = self.terms?;
        let minute = self.heard_at.minute();
        let lent = self.lent(minute);
        let row = self.reported_row();
        let admitted = self.reported_admissions(minute);
        let longest_seat = self.longest_issued();
        let keep = self.wanted_in_hand(minute, now)?;
        let claims = saturating_u32(self.sums.unmet().claims());
        let group_of = self.upstream.as_ref()?.data_center;
        let closed_through = self.treated_as_over(group_of);
        let (incarnation, at) = (self.incarnation, self.heard_at);
        self.hear_refusals();
        self.assert_sound();
        let upstream = self.upstream.as_deref_mut()?;
        upstream.tell(&self.revoked, &self.logouts);
        upstream.lease.give_back(keep);
        upstream.lease.lower_longest_seat(longest_seat);
        upstream.asked_at = now;
        let number = upstream.lease.begin_request(at);
        let pool = upstream.lease.held();
        let kept = claims.min(pool.seats);
        upstream.told_nodes = self.sums.nodes;
        upstream.told_closed = closed_through;
        upstream.has_freed = false;
        upstream.has_wished = !self.sums.waiting.is_empty() || keep.seats > 0;
        let is_quiet = lent.is_nothing();
        Some(SyncRequest {
            child: NodeId(incarnation.0),
            process: NodeId(incarnation.0),
            replaces: Vec::new(),
            data_center: upstream.data_center,
            sent_at: at,
            is_read_under_parent: upstream.is_read_under_parent,
            parent: upstream.parent,
            witnessed: upstream
                .witnessed
                .or_else(|| upstream.parent.map(Incarnation::epoch)),
            number,
            answered: upstream.answered,
            generation: upstream.lease.generation(),
            is_final: is_quiet && !upstream.lease.is_live(at),
            held: lent.plus(pool),
            wants: LeaseDemand {
                slots: keep.admissions.saturating_add(lent.seats),
                ahead: keep.ahead.saturating_add(lent.ahead),
                first: claims - kept,
                later: 0,
                kept,
                credits: keep.credits.saturating_add(lent.credits),
            },
            used: upstream.used,
            admitted,
            row,
            closed_through,
            longest_seat,
            longest_known: self.longest_seat,
            nodes: self.sums.nodes,
            waiting: crate::watermark::compact(&self.sums.waiting),
            revocations: upstream.unconfirmed.clone(),
            revoked_version: upstream.revoked_version,
            refuses_through: upstream.told,
            terms,
            is_leaving: false,
        })
    }

    /// The longest seat that a child may give.
    fn longest_issued(&self) -> DurationMs {
        let children = self.children.values().map(|child| child.longest_seat);
        children.max().unwrap_or_else(|| self.longest_to_lend())
    }

    /// Through which end every process here treats tickets as over.
    fn treated_as_over(&self, data_center: DataCenterId) -> Timestamp {
        let group = self.groups.get(&data_center);
        let ready_through = group.map_or(Timestamp::ZERO, |group| group.ready_through);
        ready_through - self.silent_clocks()
    }

    /// What children hold, admissions of `minute` only.
    fn lent(&self, minute: Minute) -> LeaseBalance {
        LeaseBalance {
            seats: saturating_u32(self.sums.seats_held),
            admissions: saturating_u32(self.admissions_lent(minute)),
            ahead: saturating_u32(self.admissions_lent(minute.next())),
            minute,
            credits: saturating_u32(self.sums.credits_held),
        }
    }

    /// What may be had in hand although nobody asked for it: as much as recent traffic used at its
    /// height, and twice what is missing, for traffic that begins grows; so that a newcomer seldom
    /// waits for a far trip. No more than a quarter of this data center's part of what is free, and
    /// nothing while anybody waits.
    pub(super) fn spare_part(&self, missing: u32) -> u32 {
        let Some(upstream) = self.upstream.as_deref() else {
            return 0;
        };
        let root = &upstream.snapshot;
        let height = upstream.demand.height.div_ceil(16);
        let is_calm = height == 0 && missing == 0;
        if is_calm || root.waiting > 0 || root.reopens_at.is_some() {
            return 0;
        }
        let growth = if missing > 0 {
            missing.saturating_mul(2).saturating_add(GROWTH_MIN)
        } else {
            0
        };
        let free = u64::from(root.seats_free.min(root.admissions_free));
        let part = free * u64::from(self.sums.nodes) / u64::from(root.nodes.max(1)) / 4;
        saturating_u32(part).min(growth.max(height + 1))
    }

    /// What to have in hand until the next answer: what is missing, and what was handed on in a
    /// period like the last.
    fn wanted_in_hand(&mut self, minute: Minute, now: Timestamp) -> Option<LeaseBalance> {
        let unmet = self.unmet();
        let claims = unmet.first.saturating_add(unmet.later);
        // Those who are let in before the next answer are inside as well.
        let may_be_inside = self
            .inside()
            .saturating_add(saturating_u32(self.seats_lent()));
        let expected = self.upstream.as_deref_mut()?.demand.expected(now);
        // Where somebody asks, others will before the answer is here: a few more than are missing.
        let root = self.upstream.as_deref().map(|up| &up.snapshot);
        let is_line = root.is_some_and(|root| root.waiting > 0 && root.slots_to_spare == 0);
        let missing = if unmet.slots > 0 && !is_line {
            unmet.slots / 2 + 2
        } else {
            0
        };
        // In a line whoever is called is known; nobody else goes in.
        let called = match root.filter(|_| is_line) {
            Some(root) => root.watermark.count(&self.sums.waiting),
            None => u32::MAX,
        };
        if self.children.is_empty() {
            return Some(LeaseBalance {
                minute,
                ..LeaseBalance::default()
            });
        }
        let ahead = missing.max(self.spare_part(unmet.slots));
        let slots = expected.slots.min(called).saturating_add(unmet.slots);
        // Whoever is called asks within seconds, and waits for less than a far trip takes: its slot
        // must be here by then, or it would never meet one.
        let is_far = self.upstream.as_deref().is_some_and(|up| up.trip >= FAR);
        let slots = if is_line && is_far {
            slots.max(called)
        } else {
            slots
        };
        let slots = if self.owes_elsewhere() {
            0
        } else {
            slots.saturating_add(ahead)
        };
        let credits = expected.credits.saturating_add(unmet.credits);
        Some(LeaseBalance {
            seats: slots.saturating_add(claims),
            admissions: slots,
            ahead: if self.heard_at.until_next_minute() <= LENT_AHEAD {
                slots
            } else {
                0
            },
            minute,
            credits: credits.max(self.credits_for_a_lease(may_be_inside.saturating_add(slots))),
        })
    }

    /// As many credits as those inside need while the world is away, for as long as its lease runs:
    /// nobody loses a seat because a cable is cut. If this data center is lost they count for no
    /// more seats than it has.
    fn credits_for_a_lease(&self, inside: u32) -> u32 {
        let longest = self
            .terms
            .map_or(DurationMs::ZERO, |terms| terms.longest_seat);
        // A seat is the session and two intervals long, and a session is sixty of those.
        let interval = (longest.0 / 62).max(SHORTEST_INTERVAL.0);
        let check_ins = LeaseTerms::ROOT.ttl.0 / interval + 2;
        saturating_u32(check_ins.saturating_mul(inside.into()))
    }

    /// All seats that may be taken here, phantoms included: what the world counts.
    fn reported_row(&self) -> SeatRow {
        let mut row = self.sums.row.clone();
        for gone in self.departed.iter().filter(|gone| gone.phantoms > 0) {
            if gone.ends_at > self.closed_through(gone.data_center) {
                row.add_many(gone.ends_at, gone.phantoms);
            }
        }
        row
    }

    /// Admissions by minute. What children hold of other minutes than `held` and the one after it
    /// counts as used until they have reported.
    fn reported_admissions(&self, held: Minute) -> Vec<(Minute, u32)> {
        let mut admitted: Vec<(Minute, u32)> =
            self.sums.admitted.iter().map(|(&m, &n)| (m, n)).collect();
        for child in self.children.values() {
            for (minute, count) in child.held.by_minute() {
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
