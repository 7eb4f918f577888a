//! A limit and one client of it: what a call is charged to, here or at a store elsewhere.

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::SharedAcquire;

use crate::limit::Limit;
use crate::stores::Elsewhere;

/// A limit that counts a call, and whom it counts it to.
#[derive(Clone, Copy)]
pub(crate) struct CoveredLimit<'p> {
    pub(crate) limit: &'p Limit,
    pub(crate) key: CallKey,
}

impl<'p> CoveredLimit<'p> {
    pub(crate) fn policy(&self) -> Policy {
        self.limit.policy_of(self.key)
    }

    /// The same, as stores elsewhere are asked.
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

    /// Its store has decided about the call.
    pub(crate) fn note_answer(&self, store: &Elsewhere) {
        let Self { limit, key } = *self;
        let contact = &limit.kept.contact;
        contact.note_answer(&*store.counts, &limit.name, key);
    }

    /// Whether one limit counts a call to both.
    pub(crate) fn is_same_limit(&self, other: &Self) -> bool {
        std::ptr::eq(self.limit, other.limit)
    }
}
