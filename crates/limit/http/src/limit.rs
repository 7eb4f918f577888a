//! One active limit: its requests, its clients, its policy and its store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{LimitHeaders, LimitStore, OnLimit, WithoutKey};
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::local::{LocalAcquire, LocalCounts};
use anteroom_limit_store::{ClientKey, KeyMaker};
use http::HeaderValue;
use smallvec::smallvec;

use crate::client_key::{self, ClientRequest, Clients, Part};
use crate::counters::LimitCounters;
use crate::covers::Covers;
use crate::distinct::Unknown;
use crate::rate_limit_headers::LimitOutcome;
use crate::stores::{SharedStore, StoreContact};

/// Active limit.
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
    pub(crate) headers: LimitHeaders,
    /// Value of `RateLimit-Policy` for clients without settings of their own; see
    /// [`LimitOutcome::policy_header`].
    pub(crate) policy_header: Option<HeaderValue>,
    pub(crate) counts_polling: bool,
    pub(crate) keys_max: usize,
    pub(crate) store: LimitStore,
    /// Shared store that counts it; `None` for a local limit.
    pub(crate) shared_store: Option<SharedStore>,
    /// Clients with settings of their own.
    pub(crate) own: HashMap<ClientKey, Policy>,
    pub(crate) kept: Arc<RetainedState>,
}

/// State that survives a change of the configuration.
pub(crate) struct RetainedState {
    /// Local counts: all of them, or those that the shared store missed.
    pub(crate) counts: LocalCounts,
    pub(crate) contact: StoreContact,
    pub(crate) keys: KeyMaker,
    pub(crate) counters: LimitCounters,
}

/// Clients that a limit counts a request for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ClientIdentity {
    /// Nearly always one; see [`client_key::keys_of`].
    Clients(Clients),
    Skipped,
    /// Rejected without being counted.
    Rejected,
}

impl Limit {
    /// Returns the clients of a request.
    pub(crate) fn identity(&self, caller: &ClientRequest<'_>) -> ClientIdentity {
        let keys = &self.kept.keys;
        let missing = match client_key::keys_of(&self.parts, self.ipv6_prefix, keys, caller) {
            Ok(clients) => return ClientIdentity::Clients(clients),
            Err(missing) => missing,
        };
        match (missing, self.without_key) {
            (Unknown::TooMany, _) | (_, WithoutKey::Reject) => ClientIdentity::Rejected,
            (Unknown::Missing, WithoutKey::Skip) => ClientIdentity::Skipped,
            (Unknown::Missing, WithoutKey::ClientAddress) => {
                let key = client_key::key_of_address(keys, caller.address, self.ipv6_prefix);
                ClientIdentity::Clients(smallvec![key])
            }
        }
    }

    /// Whether it needs the visitor of a ticket.
    pub(crate) fn needs_visitor(&self) -> bool {
        self.on_limit == OnLimit::Wait || self.parts.contains(&Part::Visitor)
    }

    /// Whether its key needs a verified token.
    pub(crate) fn needs_token(&self) -> bool {
        let is_claim = |part: &Part| matches!(part, Part::Claim(_));
        self.parts.iter().any(is_claim)
    }

    /// Whether it rejects requests locally and at once.
    pub(crate) fn rejects_locally(&self) -> bool {
        self.on_limit == OnLimit::Reject && !self.is_shadow && self.shared_store.is_none()
    }

    /// Returns the longest delay of a request.
    pub(crate) fn delay_max(&self) -> Duration {
        match self.on_limit {
            OnLimit::Delay { max } => Duration::from_millis(max.0),
            OnLimit::Reject | OnLimit::Wait => Duration::ZERO,
        }
    }

    /// Returns the acquisition for one client of a request that has waited for `delayed`.
    pub(crate) fn acquire(&self, key: ClientKey, delayed: Duration) -> LocalAcquire<'_> {
        let delay_max = self.delay_max().saturating_sub(delayed).as_micros();
        LocalAcquire {
            counts: &self.kept.counts,
            policy: &self.policy,
            key,
            cost: self.cost,
            delay_max: DurationUs(u64::try_from(delay_max).unwrap_or(u64::MAX)),
        }
    }

    /// Returns the policy of this client.
    pub(crate) fn policy_of(&self, key: ClientKey) -> Policy {
        self.kept.counts.own_policy(key).unwrap_or(self.policy)
    }

    /// Returns the outcome for this client.
    pub(crate) fn outcome(&self, key: ClientKey, verdict: Verdict) -> LimitOutcome<'_> {
        let own = self.kept.counts.own_policy(key);
        LimitOutcome {
            name: &self.name,
            rate: own.unwrap_or(self.policy).rate(),
            policy_header: match own {
                Some(_) => None,
                None => self.policy_header.as_ref(),
            },
            headers: self.headers,
            verdict,
        }
    }

    /// Applies its settings to its counts.
    pub(crate) fn commit(&self) {
        self.kept.counts.set_keys_max(self.keys_max);
        self.kept.counts.set_own(&self.own);
        if let Some(shared_store) = &self.shared_store {
            shared_store.counts.expect_requests();
        }
    }
}

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Limit({})", self.name)
    }
}
