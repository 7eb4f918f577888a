//! Decisions about visitors who are not active: admit, queue, or ask the parent.

use super::syncing::SYNC_PERIOD;
use super::{Room, Verdict, Visit};
use crate::allocation::{Allocator, AllocatorContext, AnyAllocator, CounterKey, Take};
use crate::id::VisitorId;
use crate::newest_seats::NewestSeat;
use crate::order;
use crate::queue_position::QueueReason;
use crate::rules::{OnStoreFailure, QueueingMethod, SeatNeedsCookie};
use crate::seats::SeatTerms;
use crate::sync::MINUTES_KEPT;
use crate::sync_loop::WAIT_MAX;
use crate::ticket::{Announced, FirstSeat, Seat, Seats, Ticket};
use crate::time::{DurationMs, Timestamp};
use crate::watermark::Watermark;

/// Longest first seat until its ticket comes back. A page has loaded its second resource by then.
const NEWCOMER_SESSION: DurationMs = DurationMs::from_secs(60);

impl Room {
    /// Decides about a visitor who is not active.
    pub fn handle_visit(&mut self, mut visit: Visit, now: Timestamp) -> Verdict {
        visit.may_sync &= !self.has_left;
        if let Some(reason) = self.general_queue_reason(now) {
            return self.queue(visit, reason, now);
        }
        if self.rules.queueing_method == QueueingMethod::Passthrough {
            return self.admit_outside_limits(visit, now);
        }
        if let Some(ticket) = self.admitted_before(visit, now) {
            return Verdict::Admit(ticket);
        }
        if self.has_left {
            // The parent would never get a report of an admission.
            return self.queue(visit, QueueReason::StoreUnavailable, now);
        }
        if !self.lease.is_live(now) {
            return self.handle_visit_without_lease(visit, now);
        }
        if !self.is_eligible(visit) {
            // Newcomers who have used up the spare slots ask for more.
            let is_open = self.snapshot.watermark == Watermark::Open;
            if visit.may_sync && is_open && !self.is_next_second_taken() {
                self.wish(visit, WAIT_MAX, now);
                return Verdict::SyncWithParent;
            }
            // Others may have entered meanwhile. Until that is known this visitor demands no slot:
            // it would take one from those within the watermark.
            if visit.may_sync && !self.is_snapshot_fresh(now) {
                if visit.ticket.is_none() && self.people_waiting() == 0 {
                    // Nobody waits, as far as known. A data center without visitors asks the root
                    // seldom, and does so at once for a demand only.
                    self.wish(visit, WAIT_MAX, now);
                }
                return Verdict::SyncWithParent;
            }
            let reason = match self.snapshot.watermark {
                Watermark::Nobody => QueueReason::Full,
                Watermark::UpTo(_) | Watermark::Open => QueueReason::NotYourTurn,
            };
            return self.wait_or_queue(visit, reason, now);
        }
        // A seat that was requested for an active visitor is not for this one.
        if self.uses_leases() && self.lease.balance().seats <= self.moving.kept() {
            return self.request_slot(visit, now);
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
            Take::SyncWithParent => self.request_slot(visit, now),
            Take::UsedUp => self.queue(visit, QueueReason::Full, now),
        }
    }

    /// Queues a visitor whose turn has not come, or lets it wait for the turn.
    fn wait_or_queue(&mut self, visit: Visit, reason: QueueReason, now: Timestamp) -> Verdict {
        if self.waits_for_turn(visit, now) {
            return Verdict::WaitForTurn;
        }
        self.queue(visit, reason, now)
    }

    /// Decides about a visitor who is not active and must not enter now, whatever is free: its
    /// requests are too frequent. It keeps its position, and its next request is decided like any
    /// other.
    pub fn handle_too_frequent(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        if let Some(reason) = self.general_queue_reason(now) {
            return self.queue(visit, reason, now);
        }
        if let Some(ticket) = self.admitted_before(visit, now) {
            return Verdict::Admit(ticket);
        }
        self.queue(visit, QueueReason::NotYourTurn, now)
    }

    /// Handles an empty lease: demands a slot, if the parent may have one.
    fn request_slot(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        if visit.may_sync && !self.is_parent_exhausted(now) && !self.is_next_second_taken() {
            self.wish(visit, WAIT_MAX, now);
            return Verdict::SyncWithParent;
        }
        let verdict = self.wait_or_queue(visit, QueueReason::Full, now);
        self.wish(visit, SYNC_PERIOD.times(2), now);
        verdict
    }

    /// Whether a second's admissions are used up, and the next one's are too few for those who
    /// wish for one here. Then it is a queue, and the page says so at once.
    fn is_next_second_taken(&self) -> bool {
        let each = self.rules.limits.admissions_per_second();
        self.snapshot.is_second_used_up && self.demand.wishes() > each as usize
    }

    fn wish(&mut self, visit: Visit, lasts: DurationMs, now: Timestamp) {
        self.demand.note_missing_slot(visit.visitor, now + lasts);
    }

    /// Notes demand for a slot for a new visitor before its visit is decided, if there is none here
    /// and the visit would demand one. Returns whether it did.
    pub fn demand_slot(&mut self, visitor: VisitorId, now: Timestamp) -> bool {
        let is_demanded = self.uses_leases()
            && self.rules.queueing_method != QueueingMethod::Passthrough
            && self.general_queue_reason(now).is_none()
            && self.lease.is_live(now)
            && self.lease.balance().seats == 0;
        if is_demanded {
            self.demand.note_missing_slot(visitor, now + WAIT_MAX);
        }
        is_demanded
    }

    /// Returns a newcomer's position, without admitting it. `None` if it would be admitted: then it
    /// should enter by a normal request.
    pub fn handle_look(&mut self, visit: Visit, now: Timestamp) -> Option<Verdict> {
        if let Some(reason) = self.general_queue_reason(now) {
            return Some(self.queue(visit, reason, now));
        }
        let is_open = self.rules.queueing_method == QueueingMethod::Passthrough;
        if is_open || (self.lease.is_live(now) && self.is_eligible(visit)) {
            return None;
        }
        let reason = if self.lease.is_live(now) {
            QueueReason::NotYourTurn
        } else {
            QueueReason::StoreUnavailable
        };
        Some(self.queue(visit, reason, now))
    }

    /// Goes on with a visit after its number has been taken; `None`: the counter did not reply.
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

    /// Returns the ticket for which this waiting ticket was exchanged already: by a parallel
    /// request, or by a visitor who tries to exchange it for several seats.
    fn admitted_before(&mut self, visit: Visit, now: Timestamp) -> Option<Ticket> {
        let ticket = visit.ticket?;
        let seat = self.newest_seat(ticket.visitor, now)?;
        if seat.ends_at <= ticket.last_check_in_at {
            // Another node took this turn for missed. It is over, and this clock is behind.
            return None;
        }
        self.counters.outdated_tickets += 1;
        let mut seats = Seats::default();
        seats.put(Seat {
            data_center: self.identity.data_center,
            ends_at: seat.ends_at,
            epoch: self.snapshot.epoch,
        });
        Some(Ticket {
            accepted_at: Some(seat.accepted_at),
            last_check_in_at: self.assumed_check_in(seat.ends_at, now),
            // A seat that ends so soon was never used: another tab polled at the same time.
            first_seat: (visit.is_poll && seat.ends_at <= self.turn_end(seat.accepted_at))
                .then_some(FirstSeat::Turn),
            counted_until: None,
            announced: Announced::default(),
            unseen_loss: None,
            seats,
            ..ticket
        })
    }

    fn handle_visit_without_lease(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        if visit.may_sync {
            self.wish(visit, WAIT_MAX, now);
            return Verdict::SyncWithParent;
        }
        match self.rules.on_store_failure {
            OnStoreFailure::Bounded => self.queue(visit, QueueReason::StoreUnavailable, now),
            OnStoreFailure::Admit => self.admit_outside_limits(visit, now),
        }
    }

    /// Whether the visitor may take a slot, if there is one.
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

    fn is_parent_exhausted(&self, now: Timestamp) -> bool {
        // A new minute brings new admissions, which the snapshot does not contain yet.
        let is_same_minute = self.snapshot.as_of.minute() == now.minute();
        self.snapshot.is_exhausted(now) && is_same_minute && self.is_snapshot_fresh(now)
    }

    /// Whether the snapshot may reject a visitor: a busy room would not have a newer one.
    pub(super) fn is_snapshot_fresh(&self, now: Timestamp) -> bool {
        now.since(self.snapshot.as_of) < SYNC_PERIOD.times(2)
    }

    /// Returns the arrival in the ticket, or now.
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
        self.figures.at(now).admitted += 1;
        Verdict::Admit(self.seat(visit, self.seat_terms, now))
    }

    /// Admits outside the limits: the lease and its longest seat do not apply either.
    fn admit_outside_limits(&mut self, visit: Visit, now: Timestamp) -> Verdict {
        self.counters.admitted_outside_limits += 1;
        self.figures.at(now).admitted_outside_limits += 1;
        Verdict::Admit(self.seat(visit, SeatTerms::of(&self.rules), now))
    }

    /// Records an admission and writes its ticket.
    fn seat(&mut self, visit: Visit, full: SeatTerms, now: Timestamp) -> Ticket {
        let first_seat = self.first_seat(visit);
        let terms = match first_seat {
            Some(FirstSeat::Newcomer) => full.at_most(NEWCOMER_SESSION),
            _ => full,
        };
        let ends_at = match first_seat {
            Some(FirstSeat::Turn | FirstSeat::ExtendedTurn) => self.turn_end(now),
            _ if self.rules.session_renewal => terms.renewable_end(now),
            _ => terms.fixed_end(now),
        };
        self.row.add(ends_at);
        self.figures.move_session(now, None, ends_at, now);
        let waited = visit.ticket.map(|ticket| now.since(ticket.bucket));
        self.figures.note_admission(waited, now);
        let newest = NewestSeat {
            ends_at,
            accepted_at: now,
        };
        self.newest.put(visit.visitor, newest, now);
        if first_seat == Some(FirstSeat::Turn) {
            // Its first page takes a credit.
            self.demand.note_missing_credit(visit.visitor, ends_at);
        }
        if visit.ticket.is_none() {
            self.newcomer_slots = self.newcomer_slots.saturating_sub(1);
        }
        self.count_admission(visit.visitor, now);
        let bucket = self.bucket(visit, now);
        if let Some(ticket) = visit.ticket {
            self.note_announced(&ticket, now);
            let before = self.wait_end(&ticket);
            self.figures.move_wait(before, None, now);
            let rank = self.rank(visit, bucket);
            if self.waiting.handle_departure(&ticket, rank, now) {
                self.snapshot.take_waiting(rank);
            }
            if self.rules.queueing_method == QueueingMethod::Fifo {
                let oldest = self.oldest_waiting().unwrap_or(rank);
                let inversion = rank.since(oldest);
                self.counters.inversions.note(inversion);
                self.figures.at(now).inversions.note(inversion);
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
            first_seat,
            has_missed_turn: visit.ticket.is_some_and(|ticket| ticket.has_missed_turn),
            counted_until: None,
            announced: Announced::default(),
            unseen_loss: None,
            seats,
        }
    }

    /// Returns the kind of the first seat if it is short. A visitor who has not brought a ticket
    /// back may have no cookies, and one whose page polls may be away.
    fn first_seat(&self, visit: Visit) -> Option<FirstSeat> {
        if visit.is_poll {
            return Some(FirstSeat::Turn);
        }
        let limit = u64::from(self.rules.limits.total_active_users);
        let taken = u64::from(self.snapshot.active)
            + u64::from(self.snapshot.phantoms)
            + u64::from(self.demand.unreported_admissions());
        let is_needed = match self.rules.seat_needs_cookie {
            SeatNeedsCookie::Never => false,
            SeatNeedsCookie::NearLimit => taken * 10 > limit * 9,
            SeatNeedsCookie::Always => true,
        };
        let is_short =
            is_needed && visit.ticket.is_none() && self.seat_terms.session > NEWCOMER_SESSION;
        is_short.then_some(FirstSeat::Newcomer)
    }

    fn count_admission(&mut self, visitor: VisitorId, now: Timestamp) {
        let minute = now.minute();
        match self.admitted.last_mut() {
            Some((newest, count)) if *newest == minute => *count += 1,
            _ => self.admitted.push((minute, 1)),
        }
        if self.admitted.len() > MINUTES_KEPT {
            self.admitted.remove(0);
        }
        self.origin.handle_admission(now);
        self.demand.note_admission(visitor, now);
    }
}
