//! Reply to a request that another writer has applied, worked out again from the record.
//!
//! A writer may apply the requests that others left beside a record
//! ([`crate::ledger_exchange::apply_left`]). Their senders find their requests
//! in the record. What a request was granted stands in it; all else in a reply follows from the
//! record and the request.
//!
//! # Which request it was
//!
//! A number alone does not show it: a data center whose store lost its newest writes may use one
//! twice. The record must show what it would show after this very request: the balance with the
//! grant, the usage and the time of sending. Then the child gets no more than its parent counts,
//! and no longer, whatever else the applied request said.

use super::{Child, DepartedChild, Ledger};
use crate::sync::{LeaseBalance, Reply, SyncRequest};

impl Child {
    /// Whether this request is the newest that the record has of the child.
    fn has_recorded(&self, request: &SyncRequest) -> bool {
        let mut balance = if request.is_final {
            LeaseBalance::default()
        } else {
            request.balance
        };
        balance.turn_to(self.granted.minute.max(balance.minute));
        balance.seats = balance.seats.saturating_add(self.granted.seats);
        balance.credits = balance.credits.saturating_add(self.granted.credits);
        balance.add_admissions(&self.granted);
        let is_of_lease = request.is_final || Some(self.generation) == request.generation;
        is_of_lease
            && self.number == request.number
            && self.sent_at == request.sent_at
            && self.used == request.used
            && self.balance == balance
    }
}

impl Ledger {
    /// Returns the reply to a request that another writer has applied, by this record; `None` if
    /// the record does not have the request as the newest of its child.
    #[must_use]
    pub fn recorded_reply(&self, request: &SyncRequest) -> Option<Reply> {
        if request.parent.is_some_and(|of| of != self.incarnation) {
            return None;
        }
        if request.is_leaving {
            let is_same =
                |gone: &&DepartedChild| (gone.node, gone.number) == (request.child, request.number);
            self.departed.iter().find(is_same)?;
            return Some(self.goodbye_reply(request, self.as_of));
        }
        let child = self.children.get(&request.child)?;
        if !child.has_recorded(request) {
            return None;
        }
        let ttl = child.ends_at_child_at.since(request.sent_at);
        let mut reply = self.lease_reply(request, child.granted, ttl, self.as_of);
        // The settings may have changed since.
        reply.longest_seat = reply.longest_seat.min(child.longest_seat);
        Some(Reply::Granted(reply))
    }
}
