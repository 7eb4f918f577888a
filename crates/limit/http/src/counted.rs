//! Limit and one client of it: what a request is counted against, locally or at a store.

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::SharedAcquire;

use crate::limit::Limit;
use crate::stores::SharedStore;

/// Limit that covers a request, and the client that it counts.
#[derive(Clone, Copy)]
pub(crate) struct CoveredLimit<'p> {
    pub(crate) limit: &'p Limit,
    pub(crate) key: ClientKey,
}

impl<'p> CoveredLimit<'p> {
    pub(crate) fn policy(&self) -> Policy {
        self.limit.policy_of(self.key)
    }

    /// Returns the acquisition for a shared store.
    pub(crate) fn shared<'c>(&self, policy: &'c Policy, cost: Cost) -> SharedAcquire<'c>
    where
        'p: 'c,
    {
        SharedAcquire {
            limit: &self.limit.name,
            policy,
            key: self.key,
            cost,
        }
    }

    /// Records that the store has decided about the request.
    pub(crate) fn note_reply(&self, store: &SharedStore) {
        let Self { limit, key } = *self;
        let contact = &limit.kept.contact;
        contact.note_reply(&*store.counts, &limit.name, key);
    }

    /// Whether both belong to one limit.
    pub(crate) fn is_same_limit(&self, other: &Self) -> bool {
        std::ptr::eq(self.limit, other.limit)
    }
}
