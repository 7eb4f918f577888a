//! How does one client stand, without being charged for the question?

use std::time::Duration;

use anteroom_config::Client;
use anteroom_counts::local::Charge;
use anteroom_limits::cost::Cost;
use anteroom_limits::rate::Rate;
use anteroom_limits::verdict::Outcome;

use crate::caller;
use crate::meter::Meter;

/// How one client of one limit stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// The rate that holds for it.
    pub rate: Rate,
    /// How many calls that count one would go through now.
    pub remaining: u32,
    /// In how long one would go through, if it calls no more: nothing if one would now, `None` if none ever does.
    pub free_after: Option<Duration>,
    /// In how long all is forgotten that it has called.
    pub full_after: Duration,
}

impl Meter {
    /// How a client stands, by the counts of this process. `None` if there is no such limit, or none of its clients
    /// can be called so.
    #[must_use]
    pub fn standing(&self, limit: &str, client: &Client) -> Option<Standing> {
        let plan = self.plan();
        let limit = plan.limits.iter().find(|known| &*known.name == limit)?;
        if limit.parts.len() != client.0.len() {
            return None;
        }
        let (keys, prefix) = (&limit.kept.keys, limit.ipv6_prefix);
        let key = caller::key_of_named(&limit.parts, prefix, keys, &client.0)?;
        let peek = Charge {
            cost: Cost::Peek,
            ..limit.charge(key, Duration::ZERO)
        };
        let verdict = limit.kept.counts.charge(&peek, self.now());
        let own = limit.kept.counts.own_rate(key);
        Some(Standing {
            rate: own.unwrap_or_else(|| limit.policy.rate()),
            remaining: verdict.remaining,
            free_after: match verdict.outcome {
                Outcome::Admit { delay } => Some(delay.into()),
                Outcome::Reject { retry_after } => retry_after.map(Into::into),
            },
            full_after: verdict.full_after.into(),
        })
    }
}
