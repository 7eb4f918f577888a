//! The origin ends a session: the seat is freed once, the ticket refused from then on.

use alloc::vec::Vec;

use super::Room;
use crate::id::VisitorId;
use crate::ledger::{REVOKED_MAX, RevokedList};
use crate::sync::Revocation;
use crate::ticket::{Standing, Ticket};
use crate::time::Millis;

/// What this node knows of sessions that were ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Revoked {
    /// The parent's list, as far as it was received.
    shared: RevokedList,
    /// Up to which version that is.
    version: u64,
    /// Ended here, and not yet confirmed by the parent.
    unconfirmed: Vec<Revocation>,
}

impl Revoked {
    /// What dead processes refused, of which the parent has told this one nothing yet.
    pub(super) fn inherited(entries: Vec<Revocation>) -> Self {
        let mut revoked = Self::default();
        for entry in entries {
            revoked.shared.insert(entry);
        }
        revoked
    }

    pub(super) fn contains(&self, visitor: VisitorId) -> bool {
        self.shared.contains(visitor) || self.unconfirmed.iter().any(|r| r.visitor == visitor)
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
        for entry in entries {
            self.shared.insert(entry);
        }
        self.version = version;
        let shared = &self.shared;
        self.unconfirmed
            .retain(|entry| !shared.contains(entry.visitor));
    }

    /// Forgets those of whom no ticket can run any more.
    pub(super) fn drop_through(&mut self, now: Millis) {
        self.shared.drop_through(now);
        self.unconfirmed.retain(|entry| entry.until > now);
    }

    /// What was told to a parent that has lost its memory is told again to the next; seats that
    /// were freed there are not freed once more.
    pub(super) fn begin_row(&mut self) {
        self.version = 0;
        let shared = core::mem::take(&mut self.shared).to_vec();
        self.unconfirmed.extend(shared);
        for entry in &mut self.unconfirmed {
            *entry = entry.without_seat();
        }
    }

    fn insert(&mut self, entry: Revocation) -> bool {
        let is_full = self.shared.len() + self.unconfirmed.len() >= REVOKED_MAX;
        if is_full || self.contains(entry.visitor) {
            return false;
        }
        self.unconfirmed.push(entry);
        true
    }
}

impl Room {
    /// Ends the session of a ticket. Returns whether that was news; if not, it was ended before,
    /// was over anyway, or the list is full and the seat runs out by itself.
    pub fn handle_revoke(&mut self, ticket: Ticket, now: Millis) -> bool {
        let closed_through = self.outlook.closed_through;
        let standing = ticket.standing(now, closed_through, &self.rules);
        let Standing::Inside { ends_at } = standing else {
            return false;
        };
        // A seat in another data center is not counted here: the ticket is refused everywhere, and
        // that seat runs out by itself.
        let seat = ticket.seats.of(self.identity.data_center);
        let own_end = seat.map_or(Millis::ZERO, |seat| seat.ends_at);
        let newest = self.newest_seat(ticket.visitor, now);
        let newest = newest.map_or(Millis::ZERO, |seat| seat.ends_at);
        let longest = self
            .longest_known
            .max(self.seat_terms.longest_seat())
            .max(self.lease.longest_seat());
        let is_new = self.revoked.insert(Revocation {
            visitor: ticket.visitor,
            seat_ends_at: own_end.max(newest),
            until: ends_at.max(newest).max(now + longest),
        });
        if is_new {
            self.newest.forget(ticket.visitor);
            self.tally.revoked += 1;
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

    /// All that is refused here: for a successor that starts while the parent cannot be reached.
    #[must_use]
    pub fn revocations(&self) -> Vec<Revocation> {
        let mut all = self.revoked.shared.to_vec();
        all.extend_from_slice(&self.revoked.unconfirmed);
        all
    }

    /// All visitors whose sessions were ended: for a copy that is read without asking the room.
    #[must_use]
    pub fn revoked(&self) -> Vec<VisitorId> {
        let shared = self.revoked.shared.to_vec();
        let unconfirmed = self.revoked.unconfirmed.iter();
        shared
            .iter()
            .chain(unconfirmed)
            .map(|r| r.visitor)
            .collect()
    }
}
