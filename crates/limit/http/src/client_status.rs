//! State of one client under a limit, read without acquiring anything.

use std::time::Duration;

use anteroom_config::Client;
use anteroom_limit::cost::Cost;
use anteroom_limit::rate::Rate;
use anteroom_limit::verdict::Outcome;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::local::LocalAcquire;
use anteroom_limit_store::shared::{CountsError, SharedAcquire};
use arc_swap::Guard;

use crate::client_key;
use crate::limit::Limit;
use crate::limiter::Limiter;

/// State of one client under one limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientStatus {
    /// Rate of the client.
    pub rate: Rate,
    /// Requests of cost one that would be allowed now.
    pub remaining: u32,
    /// Time until one request is allowed, if no other comes: zero if one is now, `None` if none
    /// ever is.
    pub free_after: Option<Duration>,
    /// Time until everything it used is free again.
    pub full_after: Duration,
}

impl Limiter {
    /// Returns the state of a client from the store of the limit. `None` if there is no such limit,
    /// or `client` names none of its clients.
    ///
    /// # Errors
    ///
    /// [`CountsError`] of the limit's store.
    pub async fn standing(
        &self,
        limit: &str,
        client: &Client,
    ) -> Result<Option<ClientStatus>, CountsError> {
        let plan = Guard::into_inner(self.plan());
        let known = plan.limits.iter().find(|known| &*known.name == limit);
        let Some((limit, key)) = known.and_then(|limit| Some((limit, key_of(limit, client)?)))
        else {
            return Ok(None);
        };
        let policy = limit.policy_of(key);
        let verdict = match &limit.shared_store {
            Some(store) => {
                let peek = SharedAcquire {
                    limit: &limit.name,
                    policy: &policy,
                    key,
                    cost: Cost::Peek,
                };
                let verdicts = store.counts.acquire(&[peek]).await?;
                let Some(verdict) = verdicts.first() else {
                    return Ok(None);
                };
                *verdict
            }
            None => {
                let peek = LocalAcquire {
                    cost: Cost::Peek,
                    ..limit.acquire(key, Duration::ZERO)
                };
                limit.kept.counts.acquire(&peek, self.now())
            }
        };
        Ok(Some(ClientStatus {
            rate: policy.rate(),
            remaining: verdict.remaining,
            free_after: match verdict.outcome {
                Outcome::Allow { delay } => Some(delay.into()),
                Outcome::Reject { retry_after } => retry_after.map(Into::into),
            },
            full_after: verdict.full_after.into(),
        }))
    }
}

fn key_of(limit: &Limit, client: &Client) -> Option<ClientKey> {
    if limit.parts.len() != client.0.len() {
        return None;
    }
    let (keys, prefix) = (&limit.kept.keys, limit.ipv6_prefix);
    client_key::key_of_named(&limit.parts, prefix, keys, &client.0)
}
