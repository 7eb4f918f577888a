//! What a node holds of its parent's slots, and until when. The child's half of the escrow.
//!
//! Whatever this half does before it has told its parent is bounded by what it was lent. What the
//! parent believes is [`crate::ledger`]'s half.

use crate::sync::{Answer, LeaseBalance};
use crate::time::{DurationMs, Timestamp};

/// How much earlier than the parent the child lets its lease end, in parts of 1000 of its length:
/// ten times what clocks drift apart, slewing included.
const DRIFT_PER_MILLE: u64 = 5;

/// Slots, seats and renewal credits that a child may use without asking, until `ends_at`.
///
/// # Invariants
///
/// - A lease that has ended grants nothing, whatever is left in it.
/// - Admissions are of one minute and die with it; those of the next may be held before it begins.
/// - Only the answer to the newest request changes it upwards.
/// - It allows no longer seat than the parent was told with the newest request, until it answers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lease {
    generation: Option<u32>,
    held: LeaseBalance,
    ends_at: Timestamp,
    longest_seat: DurationMs,
    newest: u64,
    pending: Option<Pending>,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pending {
    /// Its number.
    pub number: u64,
    /// When it was sent, by the holder's clock.
    pub sent_at: Timestamp,
}

/// A lease taken apart, for a record.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseParts {
    /// See [`Lease::generation`].
    pub generation: Option<u32>,
    /// See [`Lease::held`].
    pub held: LeaseBalance,
    /// See [`Lease::ends_at`].
    pub ends_at: Timestamp,
    /// See [`Lease::longest_seat`].
    pub longest_seat: DurationMs,
    /// The newest request.
    pub newest: u64,
    /// The request on its way, if its answer still counts.
    pub pending: Option<Pending>,
}

/// Why something could not be taken from a [`Lease`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// What was lent is used. Ask the parent for more, or queue the visitor.
    #[error("lease exhausted")]
    Exhausted,
    /// The lease has ended, or there never was one. The parent counts what was left as taken.
    #[error("lease ended")]
    Ended,
}

impl Lease {
    /// Takes one seat together with one admission of the minute of `now`.
    ///
    /// # Errors
    ///
    /// [`TakeError::Ended`] at or after the end, even if slots are left; otherwise
    /// [`TakeError::Exhausted`]. Both leave the lease unchanged.
    pub fn take_slot(&mut self, now: Timestamp) -> Result<(), TakeError> {
        self.check_live(now)?;
        let seats_left = self.held.seats.checked_sub(1);
        let admissions = self.held.admissions_mut(now.minute());
        match (seats_left, admissions) {
            (Some(seats_left), Some(admissions)) if *admissions > 0 => {
                *admissions -= 1;
                self.held.seats = seats_left;
                Ok(())
            }
            _ => Err(TakeError::Exhausted),
        }
    }

    /// Takes one seat for somebody who is inside already but holds none here.
    ///
    /// # Errors
    ///
    /// As [`Lease::take_slot`].
    pub fn take_seat(&mut self, now: Timestamp) -> Result<(), TakeError> {
        self.check_live(now)?;
        self.held.seats = self.held.seats.checked_sub(1).ok_or(TakeError::Exhausted)?;
        Ok(())
    }

    /// Takes one credit for prolonging a seat.
    ///
    /// # Errors
    ///
    /// As [`Lease::take_slot`].
    pub fn take_credit(&mut self, now: Timestamp) -> Result<(), TakeError> {
        self.check_live(now)?;
        self.held.credits = self
            .held
            .credits
            .checked_sub(1)
            .ok_or(TakeError::Exhausted)?;
        Ok(())
    }

    /// Hands part of it on to a child of its holder; not more than there is.
    pub fn hand_on(&mut self, part: LeaseBalance) {
        debug_assert!(
            part.seats <= self.held.seats && part.credits <= self.held.credits,
            "nobody hands on what it does not hold"
        );
        self.held.seats = self.held.seats.saturating_sub(part.seats);
        self.held.credits = self.held.credits.saturating_sub(part.credits);
        for (minute, count) in part.by_minute() {
            if let Some(admissions) = self.held.admissions_mut(minute) {
                debug_assert!(count <= *admissions, "nor admissions");
                *admissions = admissions.saturating_sub(count);
            }
        }
    }

    /// Takes back what a child of its holder had been handed and did not use. Admissions of a
    /// minute that is over are worth nothing.
    pub fn take_back(&mut self, part: LeaseBalance) {
        self.held.seats = self.held.seats.saturating_add(part.seats);
        self.held.credits = self.held.credits.saturating_add(part.credits);
        self.held.add_admissions(&part);
    }

    /// Starts anew with a parent that knows nothing of this lease. Numbers go on.
    pub fn begin_anew(&mut self) {
        *self = Self {
            newest: self.newest,
            ..Self::default()
        };
    }

    /// This lease, for a record.
    #[must_use]
    pub fn to_parts(self) -> LeaseParts {
        LeaseParts {
            generation: self.generation,
            held: self.held,
            ends_at: self.ends_at,
            longest_seat: self.longest_seat,
            newest: self.newest,
            pending: self.pending,
        }
    }

    /// A lease as it was written down.
    #[must_use]
    pub fn from_parts(parts: LeaseParts) -> Self {
        Self {
            generation: parts.generation,
            held: parts.held,
            ends_at: parts.ends_at,
            longest_seat: parts.longest_seat,
            newest: parts.newest,
            pending: parts.pending,
        }
    }

    /// Whether it may be used at `now`.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.generation.is_some() && now < self.ends_at
    }

    /// Whether the answer to the newest request still counts, and is not here yet.
    #[must_use]
    pub fn is_waiting_for_answer(&self) -> bool {
        self.pending.is_some()
    }

    /// When it ends; [`Timestamp::ZERO`] if there never was one.
    #[must_use]
    pub fn ends_at(&self) -> Timestamp {
        self.ends_at
    }

    /// What is unused.
    #[must_use]
    pub fn held(&self) -> LeaseBalance {
        self.held
    }

    /// The longest seat that may be given out.
    #[must_use]
    pub fn longest_seat(&self) -> DurationMs {
        self.longest_seat
    }

    /// The lease's generation; `None` if there never was one.
    #[must_use]
    pub fn generation(&self) -> Option<u32> {
        self.generation
    }

    /// Lowers the longest seat to what the parent is told. It computes phantom seats with that from
    /// now on, so its answer alone may allow longer ones again.
    pub fn lower_longest_seat(&mut self, told: DurationMs) {
        self.longest_seat = self.longest_seat.min(told);
    }

    /// Lowers what is held to at most `keep`; the rest is given back with the next request. Lowered
    /// first and told afterwards, so that nothing is ever held twice. Requests in flight are void:
    /// their answers still count what is given back now.
    pub fn give_back(&mut self, keep: LeaseBalance) {
        self.pending = None;
        self.held.seats = self.held.seats.min(keep.seats);
        self.held.admissions = self.held.admissions.min(keep.admissions);
        self.held.ahead = self.held.ahead.min(keep.ahead);
        self.held.credits = self.held.credits.min(keep.credits);
    }

    /// Starts a new request and returns its number. Answers to earlier ones no longer count.
    pub fn begin_request(&mut self, now: Timestamp) -> u64 {
        self.newest += 1;
        self.held.turn_to(now.minute());
        if !self.is_live(now) {
            self.give_back(LeaseBalance::default());
        }
        self.pending = Some(Pending {
            number: self.newest,
            sent_at: now,
        });
        self.newest
    }

    /// Applies an answer if it is to the newest request. Returns whether it was.
    pub fn handle_answer(&mut self, answer: &Answer) -> bool {
        let is_newest = |p: &Pending| p.number == answer.number;
        let Some(pending) = self.pending.filter(is_newest) else {
            return false;
        };
        self.pending = None;
        self.generation = answer.generation;
        let margin = DurationMs(answer.ttl.0 * DRIFT_PER_MILLE / 1_000);
        self.ends_at = pending.sent_at + answer.ttl.less(margin);
        self.longest_seat = answer.longest_seat;
        self.held.seats += answer.granted.seats;
        self.held.credits += answer.granted.credits;
        self.held.add_admissions(&answer.granted);
        true
    }

    /// Applies the news that the parent has given this lease up. Returns whether it was new.
    pub fn handle_void(&mut self, number: u64) -> bool {
        if self.pending.is_none_or(|pending| pending.number != number) {
            return false;
        }
        self.pending = None;
        self.ends_at = Timestamp::ZERO;
        self.give_back(LeaseBalance::default());
        true
    }

    /// Whether this is a lease that a sequence of requests and answers makes; otherwise which rule
    /// it breaks.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self
            .pending
            .is_some_and(|pending| pending.number != self.newest)
        {
            return Err("only the newest request is waited for");
        }
        if self.generation.is_none() && (self.held.seats > 0 || self.held.credits > 0) {
            return Err("nothing is held of a parent that has lent nothing");
        }
        Ok(())
    }

    fn check_live(&self, now: Timestamp) -> Result<(), TakeError> {
        if self.is_live(now) {
            Ok(())
        } else {
            Err(TakeError::Ended)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Snapshot;
    use crate::time::Minute;

    fn answer(number: u64, seats: u32) -> Answer {
        Answer {
            child: crate::id::NodeId(1),
            number,
            incarnation: crate::id::Incarnation(0),
            generation: Some(1),
            granted: LeaseBalance {
                seats,
                admissions: seats,
                ahead: 0,
                minute: Minute(0),
                credits: 1,
            },
            ttl: DurationMs(10_000),
            longest_seat: DurationMs(1),
            revoked: None,
            inherited: crate::watermark::WaitingCounts::new(),
            snapshot: Snapshot::default(),
        }
    }

    #[test]
    fn an_expired_lease_grants_nothing_even_with_slots_left() {
        let mut lease = Lease::default();
        assert_eq!(lease.take_slot(Timestamp(0)), Err(TakeError::Ended));
        let number = lease.begin_request(Timestamp(0));
        assert!(lease.handle_answer(&answer(number, 2)));
        assert_eq!(lease.take_slot(Timestamp(9_949)), Ok(()));
        assert_eq!(lease.take_slot(Timestamp(9_950)), Err(TakeError::Ended));
        assert_eq!(lease.held().seats, 1);
    }

    #[test]
    fn admissions_die_with_their_minute() {
        let mut lease = Lease::default();
        let number = lease.begin_request(Timestamp(59_000));
        lease.handle_answer(&answer(number, 2));
        assert_eq!(lease.take_slot(Timestamp(59_999)), Ok(()));
        assert_eq!(
            lease.take_slot(Timestamp(60_000)),
            Err(TakeError::Exhausted)
        );
        assert_eq!(lease.take_seat(Timestamp(60_000)), Ok(()));
    }

    #[test]
    fn admissions_of_the_next_minute_are_of_use_when_it_has_begun() {
        let mut lease = Lease::default();
        let number = lease.begin_request(Timestamp(59_000));
        let mut granted = answer(number, 3);
        granted.granted.admissions = 1;
        granted.granted.ahead = 1;
        lease.handle_answer(&granted);
        assert_eq!(lease.take_slot(Timestamp(59_998)), Ok(()));
        assert_eq!(
            lease.take_slot(Timestamp(59_999)),
            Err(TakeError::Exhausted)
        );
        assert_eq!(lease.take_slot(Timestamp(60_000)), Ok(()));
        assert_eq!(
            lease.take_slot(Timestamp(60_001)),
            Err(TakeError::Exhausted)
        );
    }

    #[test]
    fn an_answer_that_crosses_a_minutes_end_brings_admissions_of_either() {
        let mut lease = Lease::default();
        let number = lease.begin_request(Timestamp(59_990));
        let mut granted = answer(number, 3);
        granted.granted.ahead = 2;
        lease.handle_answer(&granted);
        lease.begin_request(Timestamp(60_010));
        assert_eq!(lease.held().by_minute(), [(Minute(1), 2), (Minute(2), 0)]);
        lease.begin_request(Timestamp(180_000));
        assert_eq!(lease.held().by_minute(), [(Minute(3), 0), (Minute(4), 0)]);
    }

    #[test]
    fn an_answer_to_an_older_request_changes_nothing() {
        let mut lease = Lease::default();
        let first = lease.begin_request(Timestamp(0));
        let second = lease.begin_request(Timestamp(1));
        assert!(!lease.handle_answer(&answer(first, 5)));
        assert_eq!(lease.held(), LeaseBalance::default());
        assert!(lease.handle_answer(&answer(second, 5)));
        assert!(!lease.handle_answer(&answer(second, 5)), "not twice");
        assert_eq!(lease.held().seats, 5);
    }

    #[test]
    fn what_is_used_while_a_request_travels_stays_used() {
        let mut lease = Lease::default();
        let number = lease.begin_request(Timestamp(0));
        lease.handle_answer(&answer(number, 3));
        let number = lease.begin_request(Timestamp(10));
        lease.take_slot(Timestamp(11)).unwrap();
        lease.handle_answer(&answer(number, 2));
        assert_eq!(lease.held().seats, 4);
    }
}
