//! Handling of one rate limit request: matches its limits, decides, builds the response and counts.

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
use anteroom_limit_store::{ClientKey, KeyMaker};
use arc_swap::ArcSwap;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::budget::OverBudget;
use crate::counting::{Counts, key_of};
use crate::decision::{DecisionOptions, MatchedLimit, RequestVerdict, decide};
use crate::policy::policy;
use crate::response::{self, ResponseDetails};
use crate::stats::{EventCounters, ResponseOutcome};
use crate::wire::{RateLimitRequest, RateLimitResponse};

/// Handler of rate limit requests.
pub(crate) struct RequestHandler {
    pub(crate) limits: ArcSwap<RateLimits>,
    pub(crate) counts: Counts,
    pub(crate) counters: EventCounters,
    keys: KeyMaker,
    now: Now,
    options: DecisionOptions,
    details: ResponseDetails,
    on_store_failure: OnStoreFailure,
    began: Instant,
    /// Whether the store is unavailable.
    outage: Outage,
}

/// Response, and the time by which it is delayed.
#[derive(Debug)]
pub(crate) struct DelayedResponse {
    pub(crate) response: RateLimitResponse,
    pub(crate) delay: Duration,
}

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestFailure {
    #[error(transparent)]
    Wrong(#[from] RequestError),
    /// Files with such limits are not loaded, so this is a defect of the program.
    #[error("a limit cannot be counted")]
    Unfit(#[from] SettingsError),
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error("the rate limit store is unavailable")]
    StoreUnavailable(#[from] CountsError),
}

impl RequestFailure {
    /// Returns the error's gRPC status.
    pub(crate) fn status(&self) -> Status {
        let code = match self {
            Self::Wrong(_) => Code::InvalidArgument,
            Self::Unfit(_) => Code::Internal,
            Self::OverBudget(_) => Code::ResourceExhausted,
            Self::StoreUnavailable(_) => Code::Unavailable,
        };
        Status::new(code, self.to_string())
    }
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
            options: DecisionOptions {
                is_shadow: config.shadow_mode,
                charges_rejected: config.charge_rejected,
            },
            details: ResponseDetails {
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

    /// Checks that a request is within bounds. Call it as soon as the request is read, before
    /// anything is derived from it.
    pub(crate) fn check(&self, request: &RateLimitRequest) -> Result<(), RequestFailure> {
        let descriptors = request.descriptors.iter();
        let lengths = descriptors.map(|descriptor| {
            let entries = descriptor.entries.iter();
            entries.map(|entry| entry.key.len() + entry.value.len())
        });
        let checked = check_bounds(&request.domain, lengths);
        Ok(checked.inspect_err(|_| self.counters.count(ResponseOutcome::Invalid))?)
    }

    /// Handles a request.
    pub(crate) async fn handle(
        &self,
        request: &RateLimitRequest,
    ) -> Result<DelayedResponse, RequestFailure> {
        match self.try_handle(request).await {
            Err(RequestFailure::StoreUnavailable(error)) => {
                self.handle_store_result(Some(&error));
                if self.on_store_failure == OnStoreFailure::Open {
                    self.counters.count(ResponseOutcome::StoreUnavailableOpen);
                    let (response, delay) = (response::open_response(request), Duration::ZERO);
                    return Ok(DelayedResponse { response, delay });
                }
                self.counters.count(ResponseOutcome::StoreUnavailableClosed);
                Err(error.into())
            }
            Err(error) => {
                self.counters.count(ResponseOutcome::Invalid);
                Err(error)
            }
            outcome => outcome,
        }
    }

    async fn try_handle(
        &self,
        request: &RateLimitRequest,
    ) -> Result<DelayedResponse, RequestFailure> {
        let limits: Arc<RateLimits> = self.limits.load_full();
        let matched = applying_to(&limits, request)?;
        if !matched.is_domain_known {
            self.counters.domain_unknown();
        }
        let now = self.now();
        let met = self.met(&matched, request)?;
        let decision = decide(&self.counts, &met, self.options, now).await?;
        if self.counts.shared().is_some() && !met.is_empty() {
            self.handle_store_result(None);
        }
        self.counters.hits(&met, &decision.verdicts);
        let is_over = decision.is_over && !self.options.is_shadow;
        self.counters.count(match (decision.is_over, is_over) {
            (true, true) => ResponseOutcome::OverLimit,
            (true, false) => ResponseOutcome::Shadow,
            (false, _) => ResponseOutcome::Ok,
        });
        let delay = self.delay(&decision, &met);
        let outcomes = response::descriptor_outcomes(&matched.descriptors, &met, &decision);
        let response = response::response(request, &outcomes, is_over, self.details, now);
        Ok(DelayedResponse { response, delay })
    }

    /// Returns the limits that a request matches, in the order of its descriptors.
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
            // More than 32 bits hold is more than any limit, so it is rejected all the same. The
            // exception is a limit of exactly that size, which admits it once.
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

    /// Returns the delay of a response. Rejections are not delayed, and neither is anything in
    /// shadow mode.
    fn delay(&self, decision: &RequestVerdict, met: &[MatchedLimit<'_>]) -> Duration {
        if decision.is_over || self.options.is_shadow {
            Duration::ZERO
        } else {
            decision.delay(met).into()
        }
    }

    pub(crate) const fn is_shadow(&self) -> bool {
        self.options.is_shadow
    }

    pub(crate) const fn on_store_failure(&self) -> OnStoreFailure {
        self.on_store_failure
    }

    /// Returns the key of a counter in this store.
    pub(crate) fn key_of(&self, counter: &CounterIdentity, policy: &Policy) -> ClientKey {
        key_of(&self.keys, counter, policy)
    }

    /// Takes note that the store has failed, or that it has replied. Logs the beginning and the end
    /// of an outage.
    pub(crate) fn handle_store_result(&self, error: Option<&CountsError>) {
        let now = self.began.elapsed();
        match error {
            Some(error) if self.outage.handle_failure(now) => {
                let cause = error as &dyn std::error::Error;
                tracing::error!(cause, "rate limits cannot be counted");
            }
            None if self.outage.handle_reply(now, || false) => {
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
    // Entries of all descriptors in one list: two allocations per request, however many descriptors
    // it has.
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
