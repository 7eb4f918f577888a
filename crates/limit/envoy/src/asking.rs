//! One question and its answer: which limits does it meet, do they let it through, what is told and
//! counted?

use std::sync::Arc;
use std::time::Duration;

use crate::config::{
    Applies, CounterIdentity, Entry, Matched, Override, RateLimits, Request, RequestDescriptor,
    RequestError, check_bounds,
};
use anteroom_config::{OnStoreFailure, RateLimitServiceConfig};
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::settings::SettingsError;
use anteroom_limit_store::clock::Now;
use anteroom_limit_store::outage::Outage;
use anteroom_limit_store::shared::CountsError;
use anteroom_limit_store::{CallKey, KeyMaker};
use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::answer::{self, ResponseDetails};
use crate::budget::OverBudget;
use crate::counting::{Counts, key_of};
use crate::judge::{Manner, MatchedLimit, RequestVerdict, judge};
use crate::policy::policy;
use crate::stats::{EventCounters, ResponseOutcome};
use crate::wire::{RateLimitRequest, RateLimitResponse};

/// Whoever answers questions.
pub(crate) struct RequestHandler {
    pub(crate) limits: ArcSwap<RateLimits>,
    pub(crate) counts: Counts,
    pub(crate) counters: EventCounters,
    keys: KeyMaker,
    now: Now,
    manner: Manner,
    told: ResponseDetails,
    on_store_failure: OnStoreFailure,
    began: Instant,
    /// Whether the store is away.
    outage: Outage,
}

/// An answer, and how long it is to be held back.
#[derive(Debug)]
pub(crate) struct DelayedResponse {
    pub(crate) response: RateLimitResponse,
    pub(crate) hold: Duration,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestFailure {
    #[error(transparent)]
    Wrong(#[from] RequestError),
    /// Files with such limits are not loaded, so this is a mistake of the program.
    #[error("a limit cannot be counted")]
    Unfit(#[from] SettingsError),
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error("the store of counts does not answer")]
    StoreAway(#[from] CountsError),
}

impl RequestHandler {
    pub(crate) fn new(
        config: &RateLimitServiceConfig,
        limits: RateLimits,
        counts: Counts,
        now: Now,
    ) -> Result<Self, getrandom::Error> {
        Ok(Self {
            limits: ArcSwap::from_pointee(limits),
            keys: counts.key_maker()?,
            counts,
            counters: EventCounters::default(),
            now,
            manner: Manner {
                is_shadow: config.shadow_mode,
                charges_rejected: config.charge_rejected,
            },
            told: ResponseDetails {
                headers: config.headers,
                has_metadata: config.dynamic_metadata,
            },
            on_store_failure: config.on_store_failure,
            began: Instant::now(),
            outage: Outage::default(),
        })
    }

    pub(crate) fn now(&self) -> anteroom_limit::time::TimestampUs {
        (self.now)()
    }

    /// Whether it is within bounds. To be asked as soon as it is read, before anything is made of
    /// it.
    pub(crate) fn check(&self, request: &RateLimitRequest) -> Result<(), RequestFailure> {
        let descriptors = request.descriptors.iter();
        let lengths = descriptors.map(|descriptor| {
            let entries = descriptor.entries.iter();
            entries.map(|entry| entry.key.len() + entry.value.len())
        });
        let checked = check_bounds(&request.domain, lengths);
        Ok(checked.inspect_err(|_| self.counters.answer(ResponseOutcome::Invalid))?)
    }

    /// Answers a question.
    pub(crate) async fn ask(
        &self,
        request: &RateLimitRequest,
    ) -> Result<DelayedResponse, RequestFailure> {
        match self.try_ask(request).await {
            Err(RequestFailure::StoreAway(error)) => {
                self.note_store(Some(&error));
                if self.on_store_failure == OnStoreFailure::Open {
                    self.counters.answer(ResponseOutcome::StoreAwayOpen);
                    let (response, hold) = (answer::open(request), Duration::ZERO);
                    return Ok(DelayedResponse { response, hold });
                }
                self.counters.answer(ResponseOutcome::StoreAwayClosed);
                Err(error.into())
            }
            Err(error) => {
                self.counters.answer(ResponseOutcome::Invalid);
                Err(error)
            }
            answered => answered,
        }
    }

    async fn try_ask(&self, request: &RateLimitRequest) -> Result<DelayedResponse, RequestFailure> {
        let limits: Arc<RateLimits> = self.limits.load_full();
        let matched = applying_to(&limits, request)?;
        if !matched.is_domain_known {
            self.counters.domain_unknown();
        }
        let now = self.now();
        let met = self.met(&matched, request)?;
        let judgement = judge(&self.counts, &met, self.manner, now).await?;
        if self.counts.shared().is_some() && !met.is_empty() {
            self.note_store(None);
        }
        self.counters.hits(&met, &judgement.verdicts);
        let is_over = judgement.is_over && !self.manner.is_shadow;
        self.counters.answer(match (judgement.is_over, is_over) {
            (true, true) => ResponseOutcome::OverLimit,
            (true, false) => ResponseOutcome::Shadow,
            (false, _) => ResponseOutcome::Ok,
        });
        let hold = self.hold(&judgement, &met);
        let said = answer::said(&matched.descriptors, &met, &judgement);
        let response = answer::answer(request, &said, is_over, self.told, now);
        Ok(DelayedResponse { response, hold })
    }

    /// The limits that a request meets, in the order of its descriptors.
    fn met<'m>(
        &self,
        matched: &'m Matched<'_>,
        request: &RateLimitRequest,
    ) -> Result<Vec<MatchedLimit<'m>>, SettingsError> {
        let mut met = Vec::with_capacity(matched.descriptors.len());
        for (applies, descriptor) in matched.descriptors.iter().zip(&request.descriptors) {
            let Applies::Limit(limit) = applies else {
                continue;
            };
            let policy = policy(limit.algorithm, limit.requests_per_unit, limit.unit)?;
            // More than 32 bits hold is more than any limit: it is rejected all the same, but for a
            // limit of as many, which lets it through once.
            let hits = u32::try_from(limit.hits).unwrap_or(u32::MAX);
            met.push(MatchedLimit {
                key: key_of(&self.keys, &limit.counter, &policy),
                policy,
                cost: if descriptor.is_negative_hits {
                    Cost::refund(hits)
                } else {
                    Cost::take(hits)
                },
                limit,
            });
        }
        Ok(met)
    }

    /// Whoever is rejected is told at once; and a service that only looks makes nobody wait.
    fn hold(&self, judgement: &RequestVerdict, met: &[MatchedLimit<'_>]) -> Duration {
        if judgement.is_over || self.manner.is_shadow {
            Duration::ZERO
        } else {
            judgement.hold(met).into()
        }
    }

    pub(crate) const fn is_shadow(&self) -> bool {
        self.manner.is_shadow
    }

    pub(crate) const fn on_store_failure(&self) -> OnStoreFailure {
        self.on_store_failure
    }

    /// The key of a counter here.
    pub(crate) fn key_of(&self, counter: &CounterIdentity, policy: &Policy) -> CallKey {
        key_of(&self.keys, counter, policy)
    }

    /// The store has failed, or it has answered. Told once when it goes, and once when it is back.
    pub(crate) fn note_store(&self, error: Option<&CountsError>) {
        let now = self.began.elapsed();
        match error {
            Some(error) if self.outage.handle_failure(now) => {
                let cause = error as &dyn std::error::Error;
                tracing::error!(cause, "rate limits cannot be counted");
            }
            None if self.outage.handle_answer(now, || false) => {
                tracing::info!("rate limits are counted again");
            }
            _ => {}
        }
    }
}

fn applying_to<'l>(
    limits: &'l RateLimits,
    request: &RateLimitRequest,
) -> Result<Matched<'l>, RequestError> {
    // Those of all descriptors, one after the other: two lists for a request, however many it has.
    let entries = request
        .descriptors
        .iter()
        .flat_map(|descriptor| &descriptor.entries);
    let entries: Vec<Entry<'_>> = entries
        .map(|entry| Entry {
            key: &entry.key,
            value: &entry.value,
        })
        .collect();
    let mut rest = &entries[..];
    let descriptors = request.descriptors.iter().map(|descriptor| {
        let own;
        (own, rest) = rest.split_at(descriptor.entries.len());
        RequestDescriptor {
            entries: own,
            limit: descriptor.limit.map(|limit| Override {
                requests_per_unit: limit.requests_per_unit,
                unit: limit.unit,
            }),
            hits: descriptor.hits_addend.map(|hits| hits.value),
        }
    });
    let descriptors: Vec<RequestDescriptor<'_>> = descriptors.collect();
    limits.applying_to(&Request {
        domain: &request.domain,
        descriptors: &descriptors,
        hits_addend: request.hits_addend,
    })
}

#[cfg(test)]
pub(crate) mod tests;
