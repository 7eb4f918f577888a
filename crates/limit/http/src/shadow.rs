//! Limits in shadow mode: they count requests that the others allow, and delay none.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit_store::shared::SharedAcquire;

use crate::counted::CoveredLimit;
use crate::counters::Event;
use crate::limiter::Limiter;

impl CoveredLimit<'_> {
    /// Counts the request at a limit in shadow mode. A shared store is reached in the background.
    pub(crate) fn count_shadow(&self, limiter: &Limiter) {
        let Self { limit, key } = *self;
        let counters = &limit.kept.counters;
        let Some(store) = &limit.shared_store else {
            let acquire = limit.acquire(key, Duration::ZERO);
            let verdict = limit.kept.counts.acquire(&acquire, limiter.now());
            counters.count(event_of(&verdict));
            return;
        };
        let Some(permit) = limiter.shadow_permit() else {
            counters.count(Event::Uncounted);
            return;
        };
        let (counts, kept) = (Arc::clone(&store.counts), Arc::clone(&limit.kept));
        let (name, policy, cost) = (limit.name.clone(), limit.policy_of(key), limit.cost);
        tokio::spawn(async move {
            let acquire = SharedAcquire {
                limit: &name,
                policy: &policy,
                key,
                cost,
            };
            match counts.acquire(&[acquire]).await {
                Ok(verdicts) => {
                    kept.contact.note_reply(&*counts, &name, key);
                    let event = verdicts.first().map_or(Event::Uncounted, event_of);
                    kept.counters.count(event);
                }
                Err(error) => {
                    kept.contact.note_failure(&name, &error);
                    kept.counters.count(Event::Uncounted);
                }
            }
            drop(permit);
        });
    }
}

fn event_of(verdict: &Verdict) -> Event {
    let is_free = matches!(verdict.outcome, Outcome::Allow { delay } if delay.0 == 0);
    if is_free { Event::Allow } else { Event::Shadow }
}
