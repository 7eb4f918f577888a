//! One limit, ready to be asked: what it counts, whom, and how it decides.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{LimitHeaders, LimitStore, OnLimit, WithoutKey};
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::local::{LocalAcquire, LocalCounts};
use anteroom_limit_store::{CallKey, KeyMaker};
use http::HeaderValue;
use smallvec::smallvec;

use crate::caller::{self, ClientRequest, Clients, Part};
use crate::counters::LimitCounters;
use crate::covers::Covers;
use crate::distinct::Unknown;
use crate::rate_limit_headers::LimitOutcome;
use crate::stores::{Elsewhere, StoreContact};

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
    /// What it says of its rate to clients without settings of their own; see
    /// [`LimitOutcome::usual`].
    pub(crate) spoken_policy: Option<HeaderValue>,
    pub(crate) counts_polling: bool,
    pub(crate) keys_max: usize,
    pub(crate) store: LimitStore,
    /// Where it is counted, if not here.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// Clients with settings of their own.
    pub(crate) own: HashMap<CallKey, Policy>,
    pub(crate) kept: Arc<RetainedState>,
}

/// What outlives a change of the configuration.
pub(crate) struct RetainedState {
    /// What is counted here: all, or what could not be counted elsewhere.
    pub(crate) counts: LocalCounts,
    pub(crate) contact: StoreContact,
    pub(crate) keys: KeyMaker,
    pub(crate) counters: LimitCounters,
}

/// Whom a limit counts a call to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ClientIdentity {
    /// Nearly always one; see [`caller::keys_of`].
    Clients(Clients),
    Nobody,
    /// It is refused without being counted.
    Refused,
}

impl Limit {
    /// Whom a call is counted to.
    pub(crate) fn whom(&self, caller: &ClientRequest<'_>) -> ClientIdentity {
        let keys = &self.kept.keys;
        let missing = match caller::keys_of(&self.parts, self.ipv6_prefix, keys, caller) {
            Ok(clients) => return ClientIdentity::Clients(clients),
            Err(missing) => missing,
        };
        match (missing, self.without_key) {
            (Unknown::TooMany, _) | (_, WithoutKey::Reject) => ClientIdentity::Refused,
            (Unknown::Missing, WithoutKey::Skip) => ClientIdentity::Nobody,
            (Unknown::Missing, WithoutKey::ClientAddress) => {
                let key = caller::key_of_address(keys, caller.address, self.ipv6_prefix);
                ClientIdentity::Clients(smallvec![key])
            }
        }
    }

    /// Whether it has to know who shows a ticket.
    pub(crate) fn needs_visitor(&self) -> bool {
        self.on_limit == OnLimit::Wait || self.parts.contains(&Part::Visitor)
    }

    /// Whether a signature has to be verified to know who calls.
    pub(crate) fn needs_token(&self) -> bool {
        let is_claim = |part: &Part| matches!(part, Part::Claim(_));
        self.parts.iter().any(is_claim)
    }

    /// Whether it sends calls away, by itself and at once.
    pub(crate) fn rejects_here(&self) -> bool {
        self.on_limit == OnLimit::Reject && !self.is_shadow && self.elsewhere.is_none()
    }

    /// How long it holds a call at most.
    pub(crate) fn patience(&self) -> Duration {
        match self.on_limit {
            OnLimit::Delay { max } => Duration::from_millis(max.0),
            OnLimit::Reject | OnLimit::Wait => Duration::ZERO,
        }
    }

    /// A call by this client, which has been held for so long already.
    pub(crate) fn charge(&self, key: CallKey, held: Duration) -> LocalAcquire<'_> {
        let patience = self.patience().saturating_sub(held).as_micros();
        LocalAcquire {
            counts: &self.kept.counts,
            policy: &self.policy,
            key,
            cost: self.cost,
            patience: DurationUs(u64::try_from(patience).unwrap_or(u64::MAX)),
        }
    }

    /// What holds for this client.
    pub(crate) fn policy_of(&self, key: CallKey) -> Policy {
        self.kept.counts.own_policy(key).unwrap_or(self.policy)
    }

    /// What it said to a call of this client.
    pub(crate) fn said(&self, key: CallKey, verdict: Verdict) -> LimitOutcome<'_> {
        let own = self.kept.counts.own_policy(key);
        LimitOutcome {
            name: &self.name,
            rate: own.unwrap_or(self.policy).rate(),
            usual: match own {
                Some(_) => None,
                None => self.spoken_policy.as_ref(),
            },
            spoken: self.spoken,
            verdict,
        }
    }

    /// Lets what it says hold for what it has counted.
    pub(crate) fn commit(&self) {
        self.kept.counts.set_keys_max(self.keys_max);
        self.kept.counts.set_own(&self.own);
        if let Some(elsewhere) = &self.elsewhere {
            elsewhere.counts.expect_calls();
        }
    }
}

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Limit({})", self.name)
    }
}
