//! Limits that only look: they are charged for what the others let through, and keep nobody
//! waiting.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit_store::shared::SharedCharge;

use crate::counted::Counted;
use crate::meter::Meter;
use crate::tally::Event;

impl Counted<'_> {
    /// Charges one that only looks. Elsewhere that goes on while the call does.
    pub(crate) fn look(&self, meter: &Meter) {
        let Self { limit, key } = *self;
        let tally = &limit.kept.tally;
        let Some(elsewhere) = &limit.elsewhere else {
            let charge = limit.charge(key, Duration::ZERO);
            let verdict = limit.kept.counts.charge(&charge, meter.now());
            tally.count(event_of(&verdict));
            return;
        };
        let Some(place) = meter.look_elsewhere() else {
            tally.count(Event::Uncounted);
            return;
        };
        let (counts, kept) = (Arc::clone(&elsewhere.counts), Arc::clone(&limit.kept));
        let (name, policy, cost) = (limit.name.clone(), limit.policy_of(key), limit.cost);
        tokio::spawn(async move {
            let charge = SharedCharge {
                limit: &name,
                policy: &policy,
                key,
                cost,
            };
            match counts.charge(&[charge]).await {
                Ok(verdicts) => {
                    kept.contact.note_answer(&*counts, &name, key);
                    let event = verdicts.first().map_or(Event::Uncounted, event_of);
                    kept.tally.count(event);
                }
                Err(error) => {
                    kept.contact.note_failure(&name, &error);
                    kept.tally.count(Event::Uncounted);
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
