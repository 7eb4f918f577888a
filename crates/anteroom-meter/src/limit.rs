//! One limit, ready to be asked: what it counts, whom, and how it decides.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use anteroom_config::{LimitHeaders, OnLimit, WithoutKey};
use anteroom_counts::local::{Charge, LocalCounts};
use anteroom_counts::{CallKey, KeyMaker};
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::Policy;
use anteroom_limits::verdict::Verdict;

use crate::answer::Said;
use crate::caller::{self, Caller, Part};
use crate::covers::Covers;
use crate::tally::Tally;

/// One limit.
pub(crate) struct Limit {
    pub(crate) name: Box<str>,
    pub(crate) policy: Policy,
    pub(crate) covers: Covers,
    pub(crate) parts: Vec<Part>,
    pub(crate) ipv6_prefix: u8,
    pub(crate) without_key: WithoutKey,
    pub(crate) cost: Cost,
    pub(crate) on_limit: OnLimit,
    pub(crate) is_shadow: bool,
    pub(crate) spoken: LimitHeaders,
    pub(crate) counts_polling: bool,
    /// Clients with settings of their own, by what their parts say.
    pub(crate) overrides: HashMap<Vec<Vec<u8>>, Policy>,
    pub(crate) kept: Arc<Kept>,
}

/// What outlives a change of the configuration.
pub(crate) struct Kept {
    pub(crate) counts: LocalCounts,
    pub(crate) keys: KeyMaker,
    pub(crate) tally: Tally,
    pub(crate) keys_max: usize,
}

/// Whom a limit counts a call to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whom<'l> {
    Client {
        key: CallKey,
        policy: &'l Policy,
        is_own: bool,
    },
    Nobody,
    /// It is refused without being counted.
    Refused,
}

impl Limit {
    /// Whom a call is counted to.
    pub(crate) fn whom(&self, caller: &Caller<'_>) -> Whom<'_> {
        let keys = &self.kept.keys;
        let usual = |key| Whom::Client {
            key,
            policy: &self.policy,
            is_own: false,
        };
        let Some(key) = caller::key(&self.parts, self.ipv6_prefix, keys, caller) else {
            return match self.without_key {
                WithoutKey::ClientAddress => usual(self.key_of(caller.address)),
                WithoutKey::Skip => Whom::Nobody,
                WithoutKey::Reject => Whom::Refused,
            };
        };
        if self.overrides.is_empty() {
            return usual(key);
        }
        let texts = caller::texts(&self.parts, self.ipv6_prefix, caller);
        match texts.and_then(|texts| self.overrides.get(&texts)) {
            Some(policy) => Whom::Client {
                key,
                policy,
                is_own: true,
            },
            None => usual(key),
        }
    }

    /// Whether it has to know who shows a ticket.
    pub(crate) fn needs_visitor(&self) -> bool {
        self.on_limit == OnLimit::Wait || self.parts.contains(&Part::Visitor)
    }

    fn key_of(&self, address: IpAddr) -> CallKey {
        caller::key_of_address(&self.kept.keys, address, self.ipv6_prefix)
    }

    pub(crate) fn charge<'l>(
        &'l self,
        key: CallKey,
        policy: &'l Policy,
        is_own: bool,
    ) -> Charge<'l> {
        Charge {
            counts: &self.kept.counts,
            policy,
            is_own,
            key,
            cost: self.cost,
        }
    }

    pub(crate) fn said(&self, policy: &Policy, verdict: Verdict) -> Said<'_> {
        Said {
            name: &self.name,
            rate: policy.rate(),
            spoken: self.spoken,
            verdict,
        }
    }
}

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Limit({})", self.name)
    }
}
