//! Limits that only look: they are charged for what the others let through, and keep nobody
//! waiting.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit_store::shared::SharedAcquire;

use crate::counted::CoveredLimit;
use crate::counters::Event;
use crate::meter::Limiter;

impl CoveredLimit<'_> {
    /// Charges one that only looks. Elsewhere that goes on while the call does.
    pub(crate) fn look(&self, meter: &Limiter) {
        let Self { limit, key } = *self;
        let counters = &limit.kept.counters;
        let Some(elsewhere) = &limit.elsewhere else {
            let charge = limit.charge(key, Duration::ZERO);
            let verdict = limit.kept.counts.charge(&charge, meter.now());
            counters.count(event_of(&verdict));
            return;
        };
        let Some(place) = meter.look_elsewhere() else {
            counters.count(Event::Uncounted);
            return;
        };
        let (counts, kept) = (Arc::clone(&elsewhere.counts), Arc::clone(&limit.kept));
        let (name, policy, cost) = (limit.name.clone(), limit.policy_of(key), limit.cost);
        tokio::spawn(async move {
            let charge = SharedAcquire {
                limit: &name,
                policy: &policy,
                key,
                cost,
            };
            match counts.charge(&[charge]).await {
                Ok(verdicts) => {
                    kept.contact.note_answer(&*counts, &name, key);
                    let event = verdicts.first().map_or(Event::Uncounted, event_of);
                    kept.counters.count(event);
                }
                Err(error) => {
                    kept.contact.note_failure(&name, &error);
                    kept.counters.count(Event::Uncounted);
                }
            }
            drop(place);
        });
    }
}

fn event_of(verdict: &Verdict) -> Event {
    let is_free = matches!(verdict.outcome, Outcome::Admit { delay } if delay.0 == 0);
    if is_free { Event::Admit } else { Event::Shadow }
}
