//! Search for a visitor by its code: what one node remembers, for a person who helps the visitor.
//!
//! A visitor's state is in its ticket, and only the visitor has that. A node remembers visitors for
//! other reasons, and can say no more: who waits and is counted here, who got a seat here, and
//! whose session was revoked. It keeps nothing for this search.

use alloc::collections::BTreeMap;

use super::Room;
use crate::id::VisitorId;
use crate::order;
use crate::queue_position::QueueReason;
use crate::time::Timestamp;
use crate::visitor_code::VisitorCode;
use crate::watermark::people_before;

/// Visitor as a node remembers it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Known {
    /// Waiting visitor that this node counts.
    Waiting {
        /// Second of its arrival.
        arrived_at: Timestamp,
        /// Position, 1 = next; `None` in a queue without an order.
        position: Option<u32>,
        /// Time by which its next request is overdue.
        counted_until: Timestamp,
    },
    /// Visitor who left the queue a short time ago.
    Left,
    /// Active visitor with a seat that this node gave or extended.
    Active {
        /// Time of its admission.
        accepted_at: Timestamp,
        /// End of the seat. Another node may have extended it since.
        ends_at: Timestamp,
    },
    /// Visitor whose session was revoked.
    Revoked,
}

impl Room {
    /// Returns what this node knows of visitors with this code. Looks at each visitor that it
    /// remembers.
    pub fn find(&mut self, code: VisitorCode, now: Timestamp) -> BTreeMap<VisitorId, Known> {
        let reason = self.general_queue_reason(now);
        let has_order = self.is_order_known(reason.unwrap_or(QueueReason::NotYourTurn));
        let mut found = BTreeMap::new();
        for entry in self.waiting.find(code, now) {
            let key = &self.identity.lottery_key;
            let rank = order::rank(entry.arrived_at, entry.visitor, &self.rules, key);
            let ahead = people_before(&self.snapshot.queue, rank);
            let known = entry
                .counted_until
                .map_or(Known::Left, |until| Known::Waiting {
                    arrived_at: entry.arrived_at,
                    position: has_order.then(|| ahead.saturating_add(1)),
                    counted_until: until,
                });
            found.insert(entry.visitor, known);
        }
        let over = now.max(self.snapshot.closed_through);
        let seats = self.newest.iter();
        for (visitor, seat) in seats.filter(|(visitor, _)| code.is_of(*visitor)) {
            let known = Known::Active {
                accepted_at: seat.accepted_at,
                ends_at: seat.ends_at,
            };
            if seat.ends_at > over {
                found.insert(visitor, known);
            }
        }
        let revoked = self.revoked.iter();
        for visitor in revoked.filter(|visitor| code.is_of(*visitor)) {
            found.insert(visitor, Known::Revoked);
        }
        found
    }
}
