//! Somebody who is not inside: admit, queue, or find out.

use super::syncing::SYNC_PERIOD;
use super::{Room, Verdict, Visit};
use crate::allocation::{Allocator, AllocatorContext, AnyAllocator, CounterKey, Take};
use crate::decision::QueueReason;
use crate::newest::NewestSeat;
use crate::order;
use crate::rules::{OnStoreFailure, QueueingMethod, SeatNeedsCookie};
use crate::seats::SeatTerms;
use crate::sync::MINUTES_KEPT;
use crate::ticket::{Seat, Seats, Ticket};
use crate::time::{DurationMs, Timestamp};
use crate::watermark::Watermark;

/// A first seat lasts at most this long until its ticket has been brought back. A page has loaded
/// its second resource by then.
const PROVISIONAL_SESSION: DurationMs = DurationMs::from_secs(60);

impl Room {
    /// Decides about somebody who is not inside.
    pub fn handle_visit(&mut self, mut visit: Visit, now: Timestamp) -> Verdict {
        visit.may_ask_parent &= !self.has_left;
        if let Some(reason) = self.hold(now) {
            return self.queue(visit, reason, now);
        }
        if self.rules.queueing_method == QueueingMethod::Passthrough {
            return self.admit_outside_limits(visit, now);
        }
        if let Some(ticket) = self.admitted_before(visit, now) {
            return Verdict::Admit(ticket);
        }
        if self.has_left {
            // Whatever is given out now, nobody would ever hear of.
            return self.queue(visit, QueueReason::StoreAway, now);
        }
        if !self.lease.is_live(now) {
            return self.handle_visit_without_lease(visit, now);
        }
        if !self.is_eligible(visit) {
            // Newcomers who have used up what was to spare ask whether there is more.
            let is_open = self.snapshot.watermark == Watermark::Open;
            if visit.may_ask_parent && is_open {
                self.demand.note_missing_slot();
                return Verdict::AskParent;
            }
            // Others may have gone in meanwhile. Until that is known it wants no slot: it would
            // take one from those who are called.
            if visit.may_ask_parent && !self.is_snapshot_fresh(now) {
                return Verdict::AskParent;
            }
            let reason = match self.snapshot.watermark {
                Watermark::Nobody => QueueReason::Full,
                Watermark::UpTo(_) | Watermark::Open => QueueReason::NotYourTurn,
            };
            return self.queue(visit, reason, now);
        }
        // What was fetched for somebody who is inside already is not taken from under its hands.
        if self.uses_leases() && self.lease.held().seats <= self.moving.held() {
            return self.find_slot(visit, now);
        }
        let statistics = self.statistics(now);
        let mut context = AllocatorContext {
            rules: &self.rules,
            statistics: &statistics,
            data_center: self.identity.data_center,
            lease: &mut self.lease,
            now,
        };
        match self.allocator.take(&mut context) {
            Take::Slot => {
                self.used.seats += 1;
                self.admit(visit, now)
            }
            Take::TakeNumber(key) => Verdict::TakeNumber(key),
            Take::AskParent => self.find_slot(visit, now),
            Take::Dry => self.queue(visit, QueueReason::Full, now),
        }
    }

    /// Decides about somebody who is not inside and may not go in now, whatever is free: it calls
    /// more often than it may. Its place is as good as anybody's, and the next time it asks it is
    /// decided about as all are.
    pub fn handle_held(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        if let Some(reason) = self.hold(now) {
            return self.queue(visit, reason, now);
        }
        if let Some(ticket) = self.admitted_before(visit, now) {
            return Verdict::Admit(ticket);
        }
        self.queue(visit, QueueReason::NotYourTurn, now)
    }

    /// There is no slot here: asks for one, if the parent may have one.
    fn find_slot(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        self.demand.note_missing_slot();
        if visit.may_ask_parent && !self.is_parent_dry(now) {
            Verdict::AskParent
        } else {
            self.queue(visit, QueueReason::Full, now)
        }
    }

    /// Wishes for a slot for somebody new, if there is none here and one would be asked for: before
    /// it is known what becomes of it. Returns whether it did.
    pub fn wish_for_slot(&mut self, now: Timestamp) -> bool {
        let is_wish = self.uses_leases()
            && self.rules.queueing_method != QueueingMethod::Passthrough
            && self.hold(now).is_none()
            && self.lease.is_live(now)
            && self.lease.held().seats == 0;
        if is_wish {
            self.demand.note_missing_slot();
        }
        is_wish
    }

    /// Tells a newcomer where it would stand, without letting it in. `None` if it would be let in:
    /// then it should come by the front door.
    pub fn handle_look(&mut self, visit: Visit, now: Timestamp) -> Option<Verdict> {
        if let Some(reason) = self.hold(now) {
            return Some(self.queue(visit, reason, now));
        }
        let is_open = self.rules.queueing_method == QueueingMethod::Passthrough;
        if is_open || (self.lease.is_live(now) && self.is_eligible(visit)) {
            return None;
        }
        let reason = if self.lease.is_live(now) {
            QueueReason::NotYourTurn
        } else {
            QueueReason::StoreAway
        };
        Some(self.queue(visit, reason, now))
    }

    /// Goes on with a visit after the number that it asked for has been taken; `None`: the counter
    /// did not answer.
    pub fn handle_number(
        &mut self,
        visit: Visit,
        (key, number): (CounterKey, Option<u64>),
        now: Timestamp,
    ) -> Verdict {
        let is_slot = match &mut self.allocator {
            AnyAllocator::Counters(allocator) => allocator.handle_number(key, number),
            AnyAllocator::Local(_) | AnyAllocator::Leases(_) => false,
        };
        // A number of a minute that is over admits nobody in this one.
        if is_slot && key.minute == now.minute() {
            self.admit(visit, now)
        } else {
            self.handle_visit(visit, now)
        }
    }

    /// The seat for which this waiting ticket has been exchanged already: by a parallel request, or
    /// by somebody who would like to exchange it for every seat there is.
    fn admitted_before(&mut self, visit: Visit, now: Timestamp) -> Option<Ticket> {
        let ticket = visit.ticket?;
        let seat = self.newest_seat(ticket.visitor, now)?;
        self.counters.older_tickets += 1;
        let mut seats = Seats::default();
        seats.put(Seat {
            data_center: self.identity.data_center,
            ends_at: seat.ends_at,
            epoch: self.snapshot.epoch,
        });
        Some(Ticket {
            accepted_at: Some(seat.accepted_at),
            last_check_in_at: self.assumed_check_in(seat.ends_at, now),
            seats,
            ..ticket
        })
    }

    fn handle_visit_without_lease(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        if visit.may_ask_parent {
            self.demand.note_missing_slot();
            return Verdict::AskParent;
        }
        match self.rules.on_store_failure {
            OnStoreFailure::Bounded => self.queue(visit, QueueReason::StoreAway, now),
            OnStoreFailure::Admit => self.admit_outside_limits(visit, now),
        }
    }

    /// Whether it may take a slot, if there is one.
    pub fn is_eligible(&self, visit: Visit) -> bool {
        let watermark = self.snapshot.watermark;
        match (visit.ticket, self.rules.queueing_method) {
            (None, _) => watermark == Watermark::Open && self.newcomer_slots > 0,
            (Some(_), QueueingMethod::Random) => {
                let key = &self.identity.lottery_key;
                watermark == Watermark::Open || self.lottery.is_drawn(visit.visitor, key)
            }
            (Some(ticket), _) => watermark.covers(self.rank(visit, ticket.bucket)),
        }
    }

    fn is_parent_dry(&self, now: Timestamp) -> bool {
        // A new minute brings new admissions, of which the outlook does not know yet.
        let is_same_minute = self.snapshot.as_of.minute() == now.minute();
        self.snapshot.is_dry() && is_same_minute && self.is_snapshot_fresh(now)
    }

    /// An outlook is worth a refusal only while a busy room would not have a newer one.
    pub(super) fn is_snapshot_fresh(&self, now: Timestamp) -> bool {
        now.since(self.snapshot.as_of) < SYNC_PERIOD.times(2)
    }

    /// The arrival that stands in the ticket, or now.
    pub(super) fn bucket(&self, visit: Visit, now: Timestamp) -> Timestamp {
        visit
            .ticket
            .map_or_else(|| order::bucket(now, &self.rules), |ticket| ticket.bucket)
    }

    pub(super) fn rank(&self, visit: Visit, bucket: Timestamp) -> Timestamp {
        order::rank(
            bucket,
            visit.visitor,
            &self.rules,
            &self.identity.lottery_key,
        )
    }

    fn admit(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        self.counters.admitted += 1;
        Verdict::Admit(self.seat(visit, self.seat_terms, now))
    }

    /// What is outside of the limits is outside of the lease, too, and of the seats that it allows.
    fn admit_outside_limits(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        self.counters.admitted_outside_limits += 1;
        Verdict::Admit(self.seat(visit, SeatTerms::of(&self.rules), now))
    }

    /// Records an admission and writes its ticket.
    fn seat(&mut self, visit: Visit, full: SeatTerms, now: Timestamp) -> Ticket {
        let is_provisional = self.is_first_seat_short(visit);
        let terms = if is_provisional {
            full.at_most(PROVISIONAL_SESSION)
        } else {
            full
        };
        let ends_at = if self.rules.session_renewal {
            terms.renewable_end(now)
        } else {
            terms.fixed_end(now)
        };
        self.row.add(ends_at);
        let newest = NewestSeat {
            ends_at,
            accepted_at: now,
        };
        self.newest.put(visit.visitor, newest, now);
        if visit.ticket.is_none() {
            self.newcomer_slots = self.newcomer_slots.saturating_sub(1);
        }
        self.count_admission(now);
        let bucket = self.bucket(visit, now);
        if visit.ticket.is_some() {
            let rank = self.rank(visit, bucket);
            self.waiting.handle_gone(visit.visitor, rank, now);
            if self.rules.queueing_method == QueueingMethod::Fifo {
                let oldest = self.oldest_waiting(now).unwrap_or(rank);
                self.counters.inversions.note(rank.since(oldest));
            }
        }
        let mut seats = Seats::default();
        seats.put(Seat {
            data_center: self.identity.data_center,
            ends_at,
            epoch: self.snapshot.epoch,
        });
        Ticket {
            visitor: visit.visitor,
            bucket,
            last_check_in_at: now,
            accepted_at: Some(now),
            is_provisional,
            seats,
        }
    }

    /// Whoever has brought a waiting ticket back keeps cookies; about others we do not know yet.
    fn is_first_seat_short(&self, visit: Visit) -> bool {
        let limit = u64::from(self.rules.limits.total_active_users);
        let taken = u64::from(self.snapshot.inside)
            + u64::from(self.snapshot.phantoms)
            + u64::from(self.demand.unreported_admissions());
        let is_needed = match self.rules.seat_needs_cookie {
            SeatNeedsCookie::Never => false,
            SeatNeedsCookie::NearLimit => taken * 10 > limit * 9,
            SeatNeedsCookie::Always => true,
        };
        is_needed && visit.ticket.is_none() && self.seat_terms.session > PROVISIONAL_SESSION
    }

    fn count_admission(&mut self, now: Timestamp) {
        let minute = now.minute();
        match self.admitted.last_mut() {
            Some((newest, count)) if *newest == minute => *count += 1,
            _ => self.admitted.push((minute, 1)),
        }
        if self.admitted.len() > MINUTES_KEPT {
            self.admitted.remove(0);
        }
        self.origin.handle_admission(now);
        self.demand.note_admission(now);
    }
}
