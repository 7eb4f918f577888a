//! Check-ins of active visitors, which may extend the seat.

use super::request_flow::Intent;
use super::{CheckIn, Room};
use crate::id::Epoch;
use crate::lease::TakeError;
use crate::newest_seats::NewestSeat;
use crate::rules::QueueingMethod;
use crate::sync_loop::{WAIT_MAX, WAIT_TIMEOUT};
use crate::ticket::{FirstSeat, Seat, Standing, Ticket};
use crate::time::Timestamp;

/// Request of a visitor with an accepted ticket.
#[derive(Clone, Copy, Debug)]
pub struct CheckInRequest {
    /// Ticket of the visitor, authentic.
    pub ticket: Ticket,
    /// Whether the request is for a page, and not for a resource that a page loads.
    pub is_navigation: bool,
    /// Intent of the request. Only one for the site uses a turn, or extends a session.
    pub intent: Intent,
    /// Whether it may wait for one round trip to the parent: only for a seat here, and only while
    /// it has one in another data center.
    pub may_sync: bool,
}

impl Room {
    /// Decides about a visitor with an accepted ticket.
    pub fn handle_check_in(&mut self, visit: CheckInRequest, now: Timestamp) -> CheckIn {
        let mut visit = visit;
        visit.may_sync &= !self.has_left;
        let ticket = visit.ticket;
        // After so long without a lease the parent does not count on this process any more.
        let is_forgotten = now >= self.accepts_tickets_until();
        if is_forgotten || self.revoked.contains(ticket.visitor) {
            return CheckIn::Over;
        }
        let closed_through = self.snapshot.closed_through;
        let standing = ticket.standing(now, closed_through, &self.rules);
        if !matches!(standing, Standing::Active { .. }) {
            return CheckIn::Over;
        }
        if ticket.is_from_the_future(now) {
            self.counters.future_tickets += 1;
        }
        match visit.intent {
            Intent::Enter | Intent::Wait => {}
            Intent::Poll | Intent::LongPoll => return CheckIn::Pass,
            Intent::ExtendTurn => return self.extend_turn(visit, now),
        }
        match self.own_seat(&ticket, now) {
            Some(seat) => self.check_in_own_seat(visit, seat, now),
            None if self.is_due(&ticket, visit.is_navigation, now) => {
                self.take_seat_here(visit, now)
            }
            // A seat in another data center still runs.
            None => CheckIn::Pass,
        }
    }

    /// Returns the seat that this data center may extend: its own, not ended. The reserve covers
    /// one of an earlier epoch; an extension moves it into the count.
    fn own_seat(&mut self, ticket: &Ticket, now: Timestamp) -> Option<Seat> {
        let seat = ticket.seats.of(self.identity.data_center)?;
        self.note_epoch(seat, now);
        let newest = self.newest_seat(ticket.visitor, now);
        let newest = newest.map_or(Timestamp::ZERO, |seat| seat.ends_at);
        let ends_at = seat.ends_at.max(newest);
        let over = now.max(self.snapshot.closed_through);
        let epoch = self.snapshot.epoch;
        (ends_at > over).then_some(Seat {
            ends_at,
            epoch,
            ..seat
        })
    }

    /// Notes a running seat of another epoch: a ledger has lost its record.
    fn note_epoch(&mut self, seat: Seat, now: Timestamp) {
        let is_known = seat.epoch == self.snapshot.epoch || seat.epoch == Epoch::ALONE;
        if !is_known && self.has_parent_reply() && seat.ends_at > now {
            self.witnessed = Some(seat.epoch);
        }
    }

    fn check_in_own_seat(&mut self, visit: CheckInRequest, seat: Seat, now: Timestamp) -> CheckIn {
        let ticket = visit.ticket;
        let written_end = ticket.seats.of(seat.data_center).map(|s| s.ends_at);
        let is_older = written_end.is_some_and(|end| end < seat.ends_at);
        let mut current = ticket;
        if is_older {
            // Only the newer ticket has the time of the last check-in; assume the earliest, so that
            // the next one is not late.
            current.last_check_in_at = self.assumed_check_in(seat.ends_at, now);
            current.first_seat = None;
            current.seats.put(seat);
        }
        let target = self.target_end(&current, visit.is_navigation, now);
        let Some(new_end) = target.filter(|end| *end > seat.ends_at) else {
            if is_older {
                self.counters.outdated_tickets += 1;
            } else if current.first_seat.is_none() {
                return CheckIn::Pass;
            }
            // A turn is taken, even if the full seat ends no later.
            current.first_seat = None;
            return CheckIn::Renewed(current);
        };
        if self.take_credit(now).is_err() {
            self.demand
                .note_missing_credit(ticket.visitor, seat.ends_at);
            if ticket.held_turn().is_some() {
                // Perhaps this is its only request for minutes. It has waited for longer.
                return self.pass(visit, now);
            }
            // Its seat still runs, so it does not wait; its next request finds a credit.
            self.counters.passed_unrenewed += 1;
            return if is_older {
                CheckIn::Renewed(current)
            } else {
                CheckIn::Pass
            };
        }
        self.demand.handle_renewed(ticket.visitor);
        self.row.shift(seat.ends_at, new_end);
        self.note_extended(&ticket, seat.ends_at, new_end, now);
        self.remember(&ticket, new_end, now);
        self.counters.renewed += 1;
        current.last_check_in_at = now;
        current.first_seat = None;
        current.seats.put(Seat {
            ends_at: new_end,
            ..seat
        });
        CheckIn::Renewed(current)
    }

    /// Extends the turn of a visitor, once. Without a credit it waits for the parent. Without a
    /// reply the turn stays as it is, and the visitor may ask again.
    fn extend_turn(&mut self, visit: CheckInRequest, now: Timestamp) -> CheckIn {
        let mut ticket = visit.ticket;
        let may_extend = ticket.held_turn().is_some_and(|turn| turn.can_extend);
        let Some(seat) = self.own_seat(&ticket, now).filter(|_| may_extend) else {
            return CheckIn::Pass;
        };
        // It has been used or extended, with another copy of this ticket.
        if Some(seat.ends_at) > ticket.seats.ends_at() {
            return CheckIn::Pass;
        }
        let latest = if self.rules.session_renewal {
            self.seat_terms.renewable_end(now)
        } else {
            self.seat_terms.fixed_end(ticket.accepted_at.unwrap_or(now))
        };
        let longer = seat.ends_at + self.rules.turn_held_for;
        let ends_at = longer.ceil_to(self.seat_terms.grid).min(latest);
        if ends_at > seat.ends_at {
            if self.take_credit(now).is_err() {
                self.demand
                    .note_missing_credit(ticket.visitor, seat.ends_at);
                return self.pass(visit, now);
            }
            self.demand.handle_renewed(ticket.visitor);
            self.row.shift(seat.ends_at, ends_at);
            self.note_extended(&ticket, seat.ends_at, ends_at, now);
            self.remember(&ticket, ends_at, now);
            ticket.seats.put(Seat { ends_at, ..seat });
        }
        self.counters.extended_turns += 1;
        ticket.last_check_in_at = now;
        ticket.first_seat = Some(FirstSeat::ExtendedTurn);
        CheckIn::Renewed(ticket)
    }

    /// Returns the end of a turn that a visitor gets at this time.
    pub(super) fn turn_end(&self, at: Timestamp) -> Timestamp {
        self.seat_terms
            .at_most(self.rules.turn_held_for)
            .fixed_end(at)
    }

    /// Returns the end to which the seat should be extended now, if any.
    fn target_end(
        &self,
        ticket: &Ticket,
        is_navigation: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if self.rules.session_renewal {
            self.is_due(ticket, is_navigation, now)
                .then(|| self.seat_terms.renewable_end(now))
        } else {
            let accepted_at = ticket.accepted_at.filter(|_| ticket.first_seat.is_some())?;
            Some(self.seat_terms.fixed_end(accepted_at))
        }
    }

    fn is_due(&self, ticket: &Ticket, is_navigation: bool, now: Timestamp) -> bool {
        ticket.is_check_in_due(now, self.seat_terms.grid, is_navigation)
    }

    /// Returns the time of the last check-in of a seat of which only the end is known: the earliest
    /// possible, so that the next one is not late. Seats given before `session_duration` changed
    /// may be longer or shorter than those of now.
    pub(super) fn assumed_check_in(&self, ends_at: Timestamp, now: Timestamp) -> Timestamp {
        now.min(ends_at - self.seat_terms.longest_seat())
    }

    /// Gives a visitor with a seat in another data center, or of another epoch, one here if one is
    /// free.
    fn take_seat_here(&mut self, visit: CheckInRequest, now: Timestamp) -> CheckIn {
        if !self.rules.session_renewal {
            return CheckIn::Pass;
        }
        match self.seat_here(visit.ticket, now) {
            Some(ticket) => CheckIn::Renewed(ticket),
            None => self.pass_without_seat(visit, now),
        }
    }

    /// Gives a seat to a visitor who was active when it came, and whose ticket ended while it
    /// waited for the parent.
    pub(super) fn seat_after_wait(&mut self, ticket: Ticket, now: Timestamp) -> Option<Ticket> {
        self.may_seat_after_wait(&ticket, now)
            .then(|| self.seat_here(ticket, now))
            .flatten()
    }

    /// Notes that such a visitor waits on: its session is lost without the next reply. Returns
    /// whether that reply may bring a seat.
    pub(super) fn wait_on(&mut self, ticket: &Ticket, now: Timestamp) -> bool {
        let may_come =
            self.may_seat_after_wait(ticket, now) && self.uses_leases() && self.lease.is_live(now);
        if may_come {
            let seat = (ticket.last_check_in_at, now + WAIT_MAX);
            let session = self.rules.session_duration;
            self.moving.note(ticket.visitor, seat, session, now);
            self.moving.note_pending(seat.1);
        }
        may_come
    }

    fn may_seat_after_wait(&self, ticket: &Ticket, now: Timestamp) -> bool {
        // A paused process may go on much later.
        let is_late = ticket
            .seats
            .ends_at()
            .is_none_or(|ends_at| now >= ends_at + WAIT_TIMEOUT + WAIT_MAX)
            || now >= self.accepts_tickets_until();
        !is_late && !self.revoked.contains(ticket.visitor) && self.rules.session_renewal
    }

    fn seat_here(&mut self, mut ticket: Ticket, now: Timestamp) -> Option<Ticket> {
        if let Some(newest) = self.newest_seat(ticket.visitor, now) {
            // It has taken one already, with another copy of this ticket.
            ticket.seats.put(Seat {
                data_center: self.identity.data_center,
                ends_at: newest.ends_at,
                epoch: self.snapshot.epoch,
            });
            self.counters.outdated_tickets += 1;
            return Some(ticket);
        }
        let seats = self.lease.balance().seats;
        let old_end = ticket.seats.ends_at().unwrap_or_default();
        if self.uses_leases() && !self.moving.is_served(ticket.visitor, old_end, seats, now) {
            return None;
        }
        self.take_seat(now).ok()?;
        self.moving.handle_seated(ticket.visitor);
        let ends_at = self.seat_terms.renewable_end(now);
        self.row.add(ends_at);
        let accepted_at = ticket.accepted_at.unwrap_or(now);
        self.figures.move_session(accepted_at, None, ends_at, now);
        self.remember(&ticket, ends_at, now);
        self.counters.renewed += 1;
        ticket.last_check_in_at = now;
        ticket.first_seat = None;
        ticket.seats.put(Seat {
            data_center: self.identity.data_center,
            ends_at,
            epoch: self.snapshot.epoch,
        });
        Some(ticket)
    }

    fn remember(&mut self, ticket: &Ticket, ends_at: Timestamp, now: Timestamp) {
        let seat = NewestSeat {
            ends_at,
            accepted_at: ticket.accepted_at.unwrap_or(now),
        };
        self.newest.put(ticket.visitor, seat, now);
    }

    fn note_extended(&mut self, ticket: &Ticket, from: Timestamp, to: Timestamp, now: Timestamp) {
        let accepted_at = ticket.accepted_at.unwrap_or(now);
        self.figures.move_session(accepted_at, Some(from), to, now);
    }

    fn take_seat(&mut self, now: Timestamp) -> Result<(), TakeError> {
        if self.rules.queueing_method == QueueingMethod::Passthrough {
            // New visitors enter outside the limits, so active ones do too.
        } else if self.uses_leases() {
            self.lease.take_seat(now)?;
            self.used.seats += 1;
        } else if !self.lease.is_live(now) || self.snapshot.seats_free == 0 {
            return Err(TakeError::Exhausted);
        }
        self.demand.note_renewal(now);
        Ok(())
    }

    fn take_credit(&mut self, now: Timestamp) -> Result<(), TakeError> {
        if self.uses_leases() {
            self.lease.take_credit(now)?;
            self.used.credits += 1;
        } else if !self.lease.is_live(now) {
            return Err(TakeError::Ended);
        }
        self.demand.note_renewal(now);
        Ok(())
    }

    /// Handles a visitor without a free seat here: it stays active, and has priority over waiting
    /// ones.
    fn pass_without_seat(&mut self, visit: CheckInRequest, now: Timestamp) -> CheckIn {
        let ticket = visit.ticket;
        let ends_at = ticket.seats.ends_at().unwrap_or_default();
        if !self.uses_leases() {
            self.demand
                .note_missing_slot(ticket.visitor, now + WAIT_TIMEOUT);
            self.demand.note_missing_credit(ticket.visitor, ends_at);
            return self.pass(visit, now);
        }
        let seat = (ticket.last_check_in_at, ends_at);
        let session = self.rules.session_duration;
        self.moving.note(ticket.visitor, seat, session, now);
        if visit.may_sync && self.lease.is_live(now) {
            self.moving.note_pending(ends_at);
        }
        self.pass(visit, now)
    }

    /// Passes without a seat here, or waits for one round trip to a reachable parent.
    fn pass(&mut self, visit: CheckInRequest, now: Timestamp) -> CheckIn {
        if visit.may_sync && self.lease.is_live(now) {
            return CheckIn::SyncWithParent;
        }
        self.counters.passed_unrenewed += 1;
        CheckIn::Pass
    }
}
