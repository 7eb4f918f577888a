//! Lease of a child: the slots that its parent granted, until a deadline. The child's half of the
//! escrow.
//!
//! The lease bounds what a child does before its next report to the parent. The parent's half is
//! [`crate::ledger`].

use crate::sync::{LeaseBalance, LeaseReply};
use crate::time::{DurationMs, Timestamp};

/// Margin by which the child ends its lease before the parent does, in parts of 1000 of its length:
/// ten times the drift between clocks, slewing included.
const DRIFT_PER_MILLE: u64 = 5;

/// Slots, seats and renewal credits that a child may use without a round trip, until `ends_at`.
///
/// # Invariants
///
/// - A lease that has ended grants nothing, whatever is left in it.
/// - Admissions are of one minute and expire with it; those of the next may be leased before it
///   begins.
/// - Only the reply to the newest request increases it.
/// - Until the next reply it allows no longer seat than the newest request reported.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lease {
    generation: Option<u32>,
    balance: LeaseBalance,
    ends_at: Timestamp,
    longest_seat: DurationMs,
    newest: u64,
    pending: Option<Pending>,
}

/// Request that has no reply yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pending {
    /// Number of the request.
    pub number: u64,
    /// Time of sending, by the child's clock.
    pub sent_at: Timestamp,
}

/// Parts of a lease, for a record.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseParts {
    /// See [`Lease::generation`].
    pub generation: Option<u32>,
    /// See [`Lease::balance`].
    pub balance: LeaseBalance,
    /// See [`Lease::ends_at`].
    pub ends_at: Timestamp,
    /// See [`Lease::longest_seat`].
    pub longest_seat: DurationMs,
    /// Number of the newest request.
    pub newest: u64,
    /// Pending request, if its reply still counts.
    pub pending: Option<Pending>,
}

/// Error of taking something from a [`Lease`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// The lease is used up. Ask the parent for more, or queue the visitor.
    #[error("lease exhausted")]
    Exhausted,
    /// The lease has ended, or there was none. The parent counts what was left as taken.
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
        let seats_left = self.balance.seats.checked_sub(1);
        let admissions = self.balance.admissions_mut(now.minute());
        match (seats_left, admissions) {
            (Some(seats_left), Some(admissions)) if *admissions > 0 => {
                *admissions -= 1;
                self.balance.seats = seats_left;
                Ok(())
            }
            _ => Err(TakeError::Exhausted),
        }
    }

    /// Takes one seat for an active visitor who has none here.
    ///
    /// # Errors
    ///
    /// As [`Lease::take_slot`].
    pub fn take_seat(&mut self, now: Timestamp) -> Result<(), TakeError> {
        self.check_live(now)?;
        self.balance.seats = self
            .balance
            .seats
            .checked_sub(1)
            .ok_or(TakeError::Exhausted)?;
        Ok(())
    }

    /// Takes one credit for extending a seat.
    ///
    /// # Errors
    ///
    /// As [`Lease::take_slot`].
    pub fn take_credit(&mut self, now: Timestamp) -> Result<(), TakeError> {
        self.check_live(now)?;
        self.balance.credits = self
            .balance
            .credits
            .checked_sub(1)
            .ok_or(TakeError::Exhausted)?;
        Ok(())
    }

    /// Moves `part` out of this lease, for a grant to a child of its holder.
    pub fn grant(&mut self, part: LeaseBalance) {
        debug_assert!(
            part.seats <= self.balance.seats && part.credits <= self.balance.credits,
            "a grant to a child exceeds its lease"
        );
        self.balance.seats = self.balance.seats.saturating_sub(part.seats);
        self.balance.credits = self.balance.credits.saturating_sub(part.credits);
        for (minute, count) in part.by_minute() {
            if let Some(admissions) = self.balance.admissions_mut(minute) {
                debug_assert!(
                    count <= *admissions,
                    "a grant to a child exceeds its admissions"
                );
                *admissions = admissions.saturating_sub(count);
            }
        }
    }

    /// Puts back what a child of its holder was granted and did not use. Admissions of a minute
    /// that is over are worth nothing.
    pub fn take_back(&mut self, part: LeaseBalance) {
        self.balance.seats = self.balance.seats.saturating_add(part.seats);
        self.balance.credits = self.balance.credits.saturating_add(part.credits);
        self.balance.add_admissions(&part);
    }

    /// Starts over with a parent that knows nothing of this lease. Request numbers go on.
    pub fn begin_anew(&mut self) {
        *self = Self {
            newest: self.newest,
            ..Self::default()
        };
    }

    /// Returns the parts of this lease, for a record.
    #[must_use]
    pub fn to_parts(self) -> LeaseParts {
        LeaseParts {
            generation: self.generation,
            balance: self.balance,
            ends_at: self.ends_at,
            longest_seat: self.longest_seat,
            newest: self.newest,
            pending: self.pending,
        }
    }

    /// Makes a lease from its parts.
    #[must_use]
    pub fn from_parts(parts: LeaseParts) -> Self {
        Self {
            generation: parts.generation,
            balance: parts.balance,
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

    /// Whether a reply to the newest request is expected and still counts.
    #[must_use]
    pub fn is_waiting_for_reply(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether there ever was a request.
    #[must_use]
    pub fn has_requested(&self) -> bool {
        self.newest > 0
    }

    /// Returns the end; [`Timestamp::ZERO`] if there never was a lease.
    #[must_use]
    pub fn ends_at(&self) -> Timestamp {
        self.ends_at
    }

    /// Returns the unused part.
    #[must_use]
    pub fn balance(&self) -> LeaseBalance {
        self.balance
    }

    /// Returns the longest seat that the child may give.
    #[must_use]
    pub fn longest_seat(&self) -> DurationMs {
        self.longest_seat
    }

    /// Returns the generation; `None` if there never was a lease.
    #[must_use]
    pub fn generation(&self) -> Option<u32> {
        self.generation
    }

    /// Lowers the longest seat to the one reported to the parent. The parent computes phantom seats
    /// from it, so only its next reply may allow longer ones again.
    pub fn lower_longest_seat(&mut self, reported: DurationMs) {
        self.longest_seat = self.longest_seat.min(reported);
    }

    /// Lowers the balance to at most `keep`; the next request returns the rest. The lease is
    /// lowered before the report, so that nothing counts twice. Pending requests are void: their
    /// replies do not know of the return.
    pub fn give_back(&mut self, keep: LeaseBalance) {
        self.pending = None;
        self.balance.seats = self.balance.seats.min(keep.seats);
        self.balance.admissions = self.balance.admissions.min(keep.admissions);
        self.balance.next_minute = self.balance.next_minute.min(keep.next_minute);
        self.balance.credits = self.balance.credits.min(keep.credits);
    }

    /// Starts a new request and returns its number. Replies to earlier ones no longer count.
    pub fn begin_request(&mut self, now: Timestamp) -> u64 {
        self.newest += 1;
        self.balance.turn_to(now.minute());
        if !self.is_live(now) {
            self.give_back(LeaseBalance::default());
        }
        self.pending = Some(Pending {
            number: self.newest,
            sent_at: now,
        });
        self.newest
    }

    /// Goes on numbering after `number`, which the holder's record may have forgotten. A pending
    /// request is void: its reply is of a record that is lost.
    pub fn skip_to(&mut self, number: u64) {
        if number > self.newest {
            self.newest = number;
            self.pending = None;
        }
    }

    /// Applies a reply if it is to the newest request. Returns whether it was.
    pub fn handle_lease_reply(&mut self, reply: &LeaseReply) -> bool {
        let is_newest = |p: &Pending| p.number == reply.number;
        let Some(pending) = self.pending.filter(is_newest) else {
            return false;
        };
        self.pending = None;
        self.generation = reply.generation;
        let margin = DurationMs(reply.ttl.0 * DRIFT_PER_MILLE / 1_000);
        self.ends_at = pending.sent_at + reply.ttl.less(margin);
        self.longest_seat = reply.longest_seat;
        self.balance.seats += reply.granted.seats;
        self.balance.credits += reply.granted.credits;
        self.balance.add_admissions(&reply.granted);
        true
    }

    /// Applies the parent's message that it has given up this lease. Returns whether it was new.
    pub fn handle_void(&mut self, number: u64) -> bool {
        if self.pending.is_none_or(|pending| pending.number != number) {
            return false;
        }
        self.pending = None;
        self.ends_at = Timestamp::ZERO;
        self.give_back(LeaseBalance::default());
        true
    }

    /// Checks the invariants of a lease; returns the broken rule.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self
            .pending
            .is_some_and(|pending| pending.number != self.newest)
        {
            return Err("the pending request is the newest one");
        }
        if self.generation.is_none() && (self.balance.seats > 0 || self.balance.credits > 0) {
            return Err("a lease without a generation is empty");
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

    fn reply(number: u64, seats: u32) -> LeaseReply {
        LeaseReply {
            child: crate::id::NodeId(1),
            number,
            incarnation: crate::id::Incarnation(0),
            record_time: Timestamp::ZERO,
            store: crate::store::StoreFacts::default(),
            is_safe: true,
            generation: Some(1),
            granted: LeaseBalance {
                seats,
                admissions: seats,
                next_minute: 0,
                minute: Minute(0),
                credits: 1,
            },
            ttl: DurationMs(10_000),
            longest_seat: DurationMs(1),
            revoked: None,
            other_clock: None,
            snapshot: Snapshot::default(),
        }
    }

    #[test]
    fn an_expired_lease_grants_nothing_even_with_slots_left() {
        let mut lease = Lease::default();
        assert_eq!(lease.take_slot(Timestamp(0)), Err(TakeError::Ended));
        let number = lease.begin_request(Timestamp(0));
        assert!(lease.handle_lease_reply(&reply(number, 2)));
        assert_eq!(lease.take_slot(Timestamp(9_949)), Ok(()));
        assert_eq!(lease.take_slot(Timestamp(9_950)), Err(TakeError::Ended));
        assert_eq!(lease.balance().seats, 1);
    }

    #[test]
    fn admissions_expire_with_their_minute() {
        let mut lease = Lease::default();
        let number = lease.begin_request(Timestamp(59_000));
        lease.handle_lease_reply(&reply(number, 2));
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
        let mut granted = reply(number, 3);
        granted.granted.admissions = 1;
        granted.granted.next_minute = 1;
        lease.handle_lease_reply(&granted);
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
    fn a_reply_across_a_minutes_end_grants_admissions_of_both_minutes() {
        let mut lease = Lease::default();
        let number = lease.begin_request(Timestamp(59_990));
        let mut granted = reply(number, 3);
        granted.granted.next_minute = 2;
        lease.handle_lease_reply(&granted);
        lease.begin_request(Timestamp(60_010));
        assert_eq!(
            lease.balance().by_minute(),
            [(Minute(1), 2), (Minute(2), 0)]
        );
        lease.begin_request(Timestamp(180_000));
        assert_eq!(
            lease.balance().by_minute(),
            [(Minute(3), 0), (Minute(4), 0)]
        );
    }

    #[test]
    fn a_reply_to_an_older_request_changes_nothing() {
        let mut lease = Lease::default();
        let first = lease.begin_request(Timestamp(0));
        let second = lease.begin_request(Timestamp(1));
        assert!(!lease.handle_lease_reply(&reply(first, 5)));
        assert_eq!(lease.balance(), LeaseBalance::default());
        assert!(lease.handle_lease_reply(&reply(second, 5)));
        assert!(!lease.handle_lease_reply(&reply(second, 5)), "not twice");
        assert_eq!(lease.balance().seats, 5);
    }

    #[test]
    fn slots_used_while_a_request_travels_stay_used() {
        let mut lease = Lease::default();
        let number = lease.begin_request(Timestamp(0));
        lease.handle_lease_reply(&reply(number, 3));
        let number = lease.begin_request(Timestamp(10));
        lease.take_slot(Timestamp(11)).unwrap();
        lease.handle_lease_reply(&reply(number, 2));
        assert_eq!(lease.balance().seats, 4);
    }
}
