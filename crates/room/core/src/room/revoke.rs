//! The origin ends a session: the seat is freed once, the ticket refused from then on.

use alloc::vec::Vec;

use super::Room;
use super::revoked_visitors::{Origin, RevokedVisitors};
use crate::id::VisitorId;
use crate::ledger::REVOKED_MAX;
use crate::sync::Revocation;
use crate::ticket::{Standing, Ticket};
use crate::time::Timestamp;

/// What this node knows of sessions that were ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Revoked {
    /// All of them.
    visitors: RevokedVisitors,
    /// Up to which version the parent's list was received.
    version: u64,
    /// Ended here, and not yet confirmed by the parent; oldest first.
    unconfirmed: Vec<Revocation>,
}

impl Revoked {
    /// What dead processes refused, of which the parent has told this one nothing yet.
    pub(super) fn inherited(entries: Vec<Revocation>) -> Self {
        let mut revoked = Self::default();
        revoked.note_listed(entries);
        revoked
    }

    pub(super) fn contains(&self, visitor: VisitorId) -> bool {
        self.visitors.contains(visitor)
    }

    pub(super) fn unconfirmed(&self) -> &[Revocation] {
        &self.unconfirmed
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Takes over what the parent has and this node lacks. That contains everything that was sent
    /// with the request; what was added since then stays unconfirmed.
    pub(super) fn handle_news(&mut self, (version, entries): (u64, Vec<Revocation>)) {
        self.note_listed(entries);
        self.version = version;
        let visitors = &self.visitors;
        self.unconfirmed
            .retain(|entry| visitors.origin_of(entry.visitor) != Some(Origin::Parent));
    }

    /// Takes over entries of the parent's list, as many as there is room for.
    fn note_listed(&mut self, entries: Vec<Revocation>) {
        for entry in entries {
            let is_known = self.visitors.origin_of(entry.visitor) == Some(Origin::Parent);
            if !is_known && self.visitors.confirmed() < REVOKED_MAX {
                self.visitors
                    .put(entry.visitor, entry.until, Origin::Parent);
            }
        }
    }

    /// Forgets those of whom no ticket can run any more.
    pub(super) fn drop_through(&mut self, now: Timestamp) {
        self.visitors.drop_through(now);
        self.unconfirmed.retain(|entry| entry.until > now);
    }

    /// What was told to a parent that has lost its memory is told again to the next; seats that
    /// were freed there are not freed once more.
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

impl Room {
    /// Ends the session of a ticket. Returns whether that was news; if not, it was ended before,
    /// was over anyway, or the list is full and the seat runs out by itself.
    pub fn handle_revoke(&mut self, ticket: Ticket, now: Timestamp) -> bool {
        let closed_through = self.snapshot.closed_through;
        let standing = ticket.standing(now, closed_through, &self.rules);
        let Standing::Inside { ends_at } = standing else {
            return false;
        };
        // A seat in another data center is not counted here: the ticket is refused everywhere, and
        // that seat runs out by itself.
        let seat = ticket.seats.of(self.identity.data_center);
        let own_end = seat.map(|seat| seat.ends_at);
        let newest = self.newest_seat(ticket.visitor, now);
        let newest = newest.map(|seat| seat.ends_at);
        let longest = self
            .longest_known
            .max(self.seat_terms.longest_seat())
            .max(self.lease.longest_seat());
        let is_new = self.revoked.insert(Revocation {
            visitor: ticket.visitor,
            seat_ends_at: own_end.max(newest),
            until: ends_at.max(newest.unwrap_or(ends_at)).max(now + longest),
        });
        if is_new {
            self.newest.forget(ticket.visitor);
            self.counters.revoked += 1;
            self.demand.note_change();
        }
        self.assert_sound();
        is_new
    }

    /// Whether the session of this visitor was ended.
    #[must_use]
    pub fn is_revoked(&self, visitor: VisitorId) -> bool {
        self.revoked.contains(visitor)
    }

    /// All visitors whose sessions were ended: for a copy that is read without asking the room, and
    /// for a successor that starts while the parent cannot be reached.
    #[must_use]
    pub fn revoked(&self) -> RevokedVisitors {
        self.revoked.visitors.clone()
    }
}
