//! Tickets of requests: opening and sealing them.

use std::sync::atomic::Ordering;

use anteroom_room::id::VisitorId;
use anteroom_room::ticket::{Standing, Ticket};
use anteroom_room::time::Timestamp;

use super::RoomHandle;

impl RoomHandle {
    /// Returns the visitor of the best of these tickets, and whether it is active. `None` if no
    /// ticket is valid. Only a decision about the request counts invalid ones.
    #[must_use]
    pub fn visitor_of(&self, tickets: &[&str]) -> Option<(VisitorId, bool)> {
        let now = self.shared.clock.now();
        let ticket = self.open_valid(tickets, now)?;
        if self.view.load().is_revoked(ticket.visitor) {
            return None;
        }
        match self.standing(&ticket, now) {
            Standing::Active { .. } => Some((ticket.visitor, true)),
            Standing::Waiting => Some((ticket.visitor, false)),
            Standing::Over => None,
        }
    }

    /// Returns the best ticket of the cookie's values: an active one before a waiting one, then the
    /// longest seat or the earliest arrival. `None` is a new visitor.
    pub(super) fn open(&self, values: &[&str], now: Timestamp) -> Option<Ticket> {
        if values.is_empty() {
            return None;
        }
        let found = self.open_valid(values, now);
        if found.is_none() {
            self.counts.invalid_tickets.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// Returns the best of the tickets that open, without counting others.
    pub(super) fn open_valid(&self, values: &[&str], now: Timestamp) -> Option<Ticket> {
        let settings = self.settings.load();
        let ring = self.shared.ring.load();
        let open = |value: &&str| {
            let opened = ring.open(value, self.shared.deployment_id, &settings.binding);
            opened.ok()
        };
        if let [only] = values {
            return open(only);
        }
        let rank = |ticket: &Ticket| match self.standing(ticket, now) {
            Standing::Active { ends_at } => (2, ends_at),
            Standing::Waiting => (1, Timestamp(u64::MAX - ticket.bucket.0)),
            Standing::Over => (0, Timestamp::ZERO),
        };
        values.iter().filter_map(open).max_by_key(rank)
    }

    pub(super) fn standing(&self, ticket: &Ticket, now: Timestamp) -> Standing {
        self.view.load().standing(ticket, now)
    }

    pub(super) fn seal(&self, ticket: &Ticket) -> String {
        let settings = self.settings.load();
        let ring = self.shared.ring.load();
        let nonce = self.shared.random.nonce();
        ring.seal(ticket, self.shared.deployment_id, &settings.binding, nonce)
    }
}
