//! Revocation of a session by the origin or an operator: the seat is freed once, the ticket
//! rejected from then on.

use alloc::vec::Vec;

use super::Room;
use super::revoked_visitors::{Origin, RevokedVisitors};
use crate::id::VisitorId;
use crate::ledger::REVOKED_MAX;
use crate::sync::Revocation;
use crate::ticket::{Standing, Ticket};
use crate::time::Timestamp;

/// Revoked sessions that this node knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Revoked {
    /// All visitors of such sessions.
    visitors: RevokedVisitors,
    /// Version of the parent's list that this node has.
    version: u64,
    /// Revocations of this node that the parent has not confirmed; oldest first.
    unconfirmed: Vec<Revocation>,
}

impl Revoked {
    /// Takes over what ended processes rejected, before the parent's first reply.
    pub(super) fn inherited(entries: Vec<Revocation>) -> Self {
        let mut revoked = Self::default();
        revoked.note_listed(entries);
        revoked
    }

    pub(super) fn contains(&self, visitor: VisitorId) -> bool {
        self.visitors.contains(visitor)
    }

    /// Iterates over all visitors with revoked sessions.
    pub(super) fn iter(&self) -> impl Iterator<Item = VisitorId> + '_ {
        self.visitors.iter().map(|entry| entry.visitor)
    }

    pub(super) fn unconfirmed(&self) -> &[Revocation] {
        &self.unconfirmed
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Adds the entries of the parent's list that this node lacks. They include all that the
    /// request reported; later ones stay unconfirmed.
    pub(super) fn add_listed(&mut self, (version, entries): (u64, Vec<Revocation>)) {
        self.note_listed(entries);
        self.version = version;
        let visitors = &self.visitors;
        self.unconfirmed
            .retain(|entry| visitors.origin_of(entry.visitor) != Some(Origin::Parent));
    }

    /// Adds entries of the parent's list, up to the maximum.
    fn note_listed(&mut self, entries: Vec<Revocation>) {
        for entry in entries {
            let is_known = self.visitors.origin_of(entry.visitor) == Some(Origin::Parent);
            if !is_known && self.visitors.confirmed() < REVOKED_MAX {
                self.visitors
                    .put(entry.visitor, entry.until, Origin::Parent);
            }
        }
    }

    /// Removes entries whose tickets have all expired.
    pub(super) fn drop_through(&mut self, now: Timestamp) {
        self.visitors.drop_through(now);
        self.unconfirmed.retain(|entry| entry.until > now);
    }

    /// Prepares for a parent that lost its record: all entries are reported again, without freeing
    /// their seats once more.
    pub(super) fn begin_row(&mut self) {
        self.version = 0;
        self.unconfirmed.extend(self.visitors.forget_parent());
        for entry in &mut self.unconfirmed {
            *entry = entry.without_seat();
        }
    }

    fn insert(&mut self, entry: Revocation) -> bool {
        let is_full = self.visitors.len() >= REVOKED_MAX;
        if is_full || self.contains(entry.visitor) {
            return false;
        }
        self.visitors.put(entry.visitor, entry.until, Origin::Here);
        self.unconfirmed.push(entry);
        true
    }
}

/// Session of a visitor that is revoked.
struct RevokedSession {
    accepted_at: Timestamp,
    /// End of the seat that is counted here.
    seat_ends_at: Option<Timestamp>,
    /// End of the last ticket.
    last_end: Timestamp,
}

impl Room {
    /// Ends the session of a ticket. Returns whether that was new. If not, it had been revoked or
    /// was over, or the list is full and the seat ends at its normal end.
    pub fn handle_revoke(&mut self, ticket: Ticket, now: Timestamp) -> bool {
        let closed_through = self.snapshot.closed_through;
        let standing = ticket.standing(now, closed_through, &self.rules);
        let Standing::Active { ends_at } = standing else {
            return false;
        };
        // A seat in another data center is not counted here: all nodes reject the ticket, and that
        // seat ends at its normal end.
        let seat = ticket.seats.of(self.identity.data_center);
        let own_end = seat.map(|seat| seat.ends_at);
        let newest = self.newest_seat(ticket.visitor, now);
        let newest = newest.map(|seat| seat.ends_at);
        let session = RevokedSession {
            accepted_at: ticket.accepted_at.unwrap_or(now),
            seat_ends_at: own_end.max(newest),
            last_end: ends_at.max(newest.unwrap_or(ends_at)),
        };
        self.revoke(ticket.visitor, session, now)
    }

    /// Ends the session of a visitor with a seat that this node gave or extended. Returns whether
    /// that was new. If not, the node knows no such seat, or the list is full.
    pub fn handle_revoke_of(&mut self, visitor: VisitorId, now: Timestamp) -> bool {
        let over = now.max(self.snapshot.closed_through);
        let seat = self.newest_seat(visitor, now);
        let Some(seat) = seat.filter(|seat| seat.ends_at > over) else {
            return false;
        };
        let session = RevokedSession {
            accepted_at: seat.accepted_at,
            seat_ends_at: Some(seat.ends_at),
            last_end: seat.ends_at,
        };
        self.revoke(visitor, session, now)
    }

    fn revoke(&mut self, visitor: VisitorId, session: RevokedSession, now: Timestamp) -> bool {
        let RevokedSession {
            accepted_at,
            seat_ends_at,
            last_end,
        } = session;
        let longest = self
            .longest_known
            .max(self.seat_terms.longest_seat())
            .max(self.lease.longest_seat());
        let is_new = self.revoked.insert(Revocation {
            visitor,
            seat_ends_at,
            until: last_end.max(now + longest),
        });
        if is_new {
            self.newest.forget(visitor);
            self.counters.revoked += 1;
            self.figures.at(now).revoked += 1;
            if seat_ends_at.is_some() {
                self.figures
                    .move_session(accepted_at, seat_ends_at, now, now);
            }
            self.demand.note_change();
        }
        self.assert_sound();
        is_new
    }

    /// Whether the session of this visitor was revoked.
    #[must_use]
    pub fn is_revoked(&self, visitor: VisitorId) -> bool {
        self.revoked.contains(visitor)
    }

    /// Returns all visitors with revoked sessions: for a copy that is read without the room, and
    /// for a successor that starts while the parent is unavailable.
    #[must_use]
    pub fn revoked(&self) -> RevokedVisitors {
        self.revoked.visitors.clone()
    }
}
