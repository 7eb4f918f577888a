//! How does one client stand, without being charged for the question?

use std::time::Duration;

use anteroom_config::Client;
use anteroom_limit::cost::Cost;
use anteroom_limit::rate::Rate;
use anteroom_limit::verdict::Outcome;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::local::LocalAcquire;
use anteroom_limit_store::shared::{CountsError, SharedAcquire};
use arc_swap::Guard;

use crate::caller;
use crate::limit::Limit;
use crate::meter::Limiter;

/// How one client of one limit stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// The rate that holds for it.
    pub rate: Rate,
    /// How many calls that count one would go through now.
    pub remaining: u32,
    /// In how long one would go through, if it calls no more: nothing if one would now, `None` if
    /// none ever does.
    pub free_after: Option<Duration>,
    /// In how long all is forgotten that it has called.
    pub full_after: Duration,
}

impl Limiter {
    /// How a client stands, where the limit is counted. `None` if there is no such limit, or none
    /// of its clients can be called so.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if the limit's store does not say it.
    pub async fn standing(
        &self,
        limit: &str,
        client: &Client,
    ) -> Result<Option<Standing>, CountsError> {
        let plan = Guard::into_inner(self.plan());
        let known = plan.limits.iter().find(|known| &*known.name == limit);
        let Some((limit, key)) = known.and_then(|limit| Some((limit, key_of(limit, client)?)))
        else {
            return Ok(None);
        };
        let policy = limit.policy_of(key);
        let verdict = match &limit.elsewhere {
            Some(elsewhere) => {
                let peek = SharedAcquire {
                    limit: &limit.name,
                    policy: &policy,
                    key,
                    cost: Cost::Peek,
                };
                let verdicts = elsewhere.counts.charge(&[peek]).await?;
                let Some(verdict) = verdicts.first() else {
                    return Ok(None);
                };
                *verdict
            }
            None => {
                let peek = LocalAcquire {
                    cost: Cost::Peek,
                    ..limit.charge(key, Duration::ZERO)
                };
                limit.kept.counts.charge(&peek, self.now())
            }
        };
        Ok(Some(Standing {
            rate: policy.rate(),
            remaining: verdict.remaining,
            free_after: match verdict.outcome {
                Outcome::Admit { delay } => Some(delay.into()),
                Outcome::Reject { retry_after } => retry_after.map(Into::into),
            },
            full_after: verdict.full_after.into(),
        }))
    }
}

fn key_of(limit: &Limit, client: &Client) -> Option<CallKey> {
    if limit.parts.len() != client.0.len() {
        return None;
    }
    let (keys, prefix) = (&limit.kept.keys, limit.ipv6_prefix);
    caller::key_of_named(&limit.parts, prefix, keys, &client.0)
}
