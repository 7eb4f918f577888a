//! One request: its limits, its clients, and the decision.
//!
//! If several limits reject it, the strictest action applies: reject before queue, and queue before
//! delay. Limits in shadow mode count only what the others allow.

use std::time::Duration;

use anteroom_config::OnLimit;
use anteroom_limit::registry::Early;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_proxy::access_log::{self, AccessLine};
use anteroom_proxy::path::Readings;
use anteroom_proxy::request_view::RequestView;
use http::StatusCode;
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::acquisition::{AcquireOutcome, Acquisition};
use crate::client_key::ClientRequest;
use crate::counted::CoveredLimit;
use crate::counters::Event;
use crate::limit::{ClientIdentity, Limit};
use crate::limiter::Limiter;
use crate::plan::Plan;
use crate::rate_limit_headers::LimitOutcome;
use crate::tokens::ShownTokens;

/// Part of its delay that a delayed request waits at least until the next try. So it tries a few
/// dozen times in all, however many requests are delayed at once.
const DELAYED_PART: u32 = 8;

/// Action for a request.
#[derive(Clone, Copy)]
pub(crate) enum RequestAction {
    /// Allows it after this delay.
    Allow(Duration),
    /// Sends it to the waiting room.
    Queue,
    /// Rejects it.
    Reject,
}

/// Rejection without a verdict of a limit.
#[derive(Clone, Copy)]
pub(crate) enum EarlyRejection<'p> {
    /// The request lacks the key of this limit.
    MissingKey(&'p Limit),
    /// This limit cannot be checked, and rejects everything then.
    Unavailable(&'p Limit),
}

impl<'p> EarlyRejection<'p> {
    pub(crate) const fn limit(self) -> &'p Limit {
        match self {
            Self::MissingKey(limit) | Self::Unavailable(limit) => limit,
        }
    }
}

/// Request with the limits that cover it.
pub(crate) struct LimitedRequest<'p> {
    acquisition: Acquisition<'p>,
    /// Limits in shadow mode.
    shadows: Vec<CoveredLimit<'p>>,
    /// Limits without a verdict, and the event that they count.
    skipped: Vec<(&'p Limit, Event)>,
    is_inside: bool,
    /// Whether some limits reject it, and the others were not tried.
    is_over_early: bool,
    pub(crate) early_rejection: Option<EarlyRejection<'p>>,
    delayed: Duration,
}

impl<'p> LimitedRequest<'p> {
    /// Finds the limits that cover a request; `None` if its path is malformed.
    pub(crate) fn of_view(
        limiter: &Limiter,
        plan: &'p Plan,
        request: &RequestView<'_>,
    ) -> Option<Self> {
        let (client, headers) = (request.client, request.headers);
        let readings = Readings::under(limiter.decoding(), request.path).ok()?;
        let visitor = plan
            .needs_visitor
            .then(|| limiter.visitor(client, &readings, headers))
            .flatten();
        let tokens = plan.tokens.as_deref();
        let now = tokens.map_or(0, |_| limiter.wall_seconds());
        let tokens = ShownTokens::of(tokens, headers, now);
        let caller = ClientRequest {
            address: client.address,
            headers,
            readings: &readings,
            tokens: &tokens,
            visitor: visitor.map(|visitor| visitor.id),
        };
        let mut limited = Self {
            acquisition: Acquisition::default(),
            shadows: Vec::new(),
            skipped: Vec::new(),
            is_inside: visitor.is_some_and(|visitor| visitor.is_active),
            is_over_early: false,
            early_rejection: None,
            delayed: Duration::ZERO,
        };
        let is_polling = limiter.is_polling(request.path);
        let covering = plan.limits.iter().filter(|limit| {
            (limit.counts_polling || !is_polling)
                && limit
                    .covers
                    .contain(request.method, client.host(), &readings)
        });
        let covering: SmallVec<[&'p Limit; 4]> = covering.collect();
        limited.is_over_early = limited.is_over_before_tokens(&covering, &caller, limiter);
        if !limited.is_over_early {
            for limit in covering {
                limited.add(limit, limit.identity(&caller));
            }
        }
        Some(limited)
    }

    /// Whether local limits without tokens reject the request. Verifying a signature costs a
    /// hundred times more than checking them. So they stop clients with made-up tokens first. The
    /// other limits would only change the headers: a rejection has priority over queueing, and
    /// nothing is acquired.
    fn is_over_before_tokens(
        &mut self,
        covering: &[&'p Limit],
        caller: &ClientRequest<'_>,
        limiter: &Limiter,
    ) -> bool {
        let needs_token = covering.iter().any(|limit| limit.needs_token());
        if !needs_token || !caller.tokens.need_verification() {
            return false;
        }
        let mut early = Acquisition::default();
        let alone = covering.iter().copied();
        let alone = alone.filter(|limit| limit.rejects_locally() && !limit.needs_token());
        for limit in alone {
            if let ClientIdentity::Clients(keys) = limit.identity(caller) {
                let counted = keys.into_iter().map(|key| CoveredLimit { limit, key });
                early.counted.extend(counted);
            }
        }
        let is_over = early.are_over_locally(limiter);
        if is_over {
            self.acquisition = early;
        }
        is_over
    }

    fn add(&mut self, limit: &'p Limit, identity: ClientIdentity) {
        match identity {
            ClientIdentity::Skipped => self.skipped.push((limit, Event::Skip)),
            ClientIdentity::Rejected if limit.is_shadow => {
                self.skipped.push((limit, Event::Shadow));
            }
            ClientIdentity::Rejected => {
                let rejection = EarlyRejection::MissingKey(limit);
                self.early_rejection = self.early_rejection.or(Some(rejection));
            }
            ClientIdentity::Clients(keys) => {
                let counted = keys.into_iter().map(|key| CoveredLimit { limit, key });
                if limit.is_shadow {
                    self.shadows.extend(counted);
                } else {
                    self.acquisition.counted.extend(counted);
                }
            }
        }
    }

    /// Acquires all limits or none, if no store must be reached and no limit may delay the request.
    /// Only [`LimitedRequest::count_allowed`] and [`LimitedRequest::count_over_limit`] count it.
    pub(crate) fn decide_now(&mut self, limiter: &Limiter) -> Option<RequestAction> {
        if self.early_rejection.is_some() || self.is_over_early {
            return Some(RequestAction::Reject);
        }
        let rejects = |counted: &CoveredLimit<'_>| counted.limit.on_limit == OnLimit::Reject;
        if !self.acquisition.counted.iter().all(rejects) {
            return None;
        }
        match self.acquisition.acquire_now(Duration::ZERO, limiter)? {
            AcquireOutcome::All => Some(RequestAction::Allow(Duration::ZERO)),
            AcquireOutcome::Over | AcquireOutcome::Unavailable(_) => Some(RequestAction::Reject),
        }
    }

    /// Acquires all limits or none, and delays the request as long as its limits allow.
    pub(crate) async fn decide(&mut self, limiter: &Limiter) -> RequestAction {
        if self.early_rejection.is_some() || self.is_over_early {
            return RequestAction::Reject;
        }
        loop {
            match self.acquisition.acquire(self.delayed, limiter).await {
                AcquireOutcome::All => {
                    let verdicts = self.acquisition.verdicts().map(|(_, verdict)| verdict);
                    let wait = wait_of(verdicts).map(Duration::from);
                    return RequestAction::Allow(wait.unwrap_or_default());
                }
                AcquireOutcome::Unavailable(limit) => {
                    self.early_rejection = Some(EarlyRejection::Unavailable(limit));
                    return RequestAction::Reject;
                }
                AcquireOutcome::Over => {}
            }
            let Some(wait) = self.next_wait() else {
                return self.action_over_limit(limiter);
            };
            let began = Instant::now();
            tokio::time::sleep(wait).await;
            self.delayed += began.elapsed();
        }
    }

    /// Returns the time until the next try of a rejected request; `None` if it is not to be
    /// delayed.
    fn next_wait(&self) -> Option<Duration> {
        // All delayed requests get the same retry time, and few of them pass. So a request tries
        // less often the longer it has waited.
        let mut longest = self.delayed / DELAYED_PART;
        for (counted, verdict) in self.acquisition.rejecting() {
            let Outcome::Reject {
                retry_after: Some(wait),
            } = verdict.outcome
            else {
                return None;
            };
            let wait = Duration::from(wait);
            let left = counted.limit.delay_max().saturating_sub(self.delayed);
            // The verdict of a leaky bucket already means that its queue is full.
            let is_queue = counted.limit.policy.row().early == Early::Waits;
            if is_queue || wait > left {
                return None;
            }
            longest = longest.max(wait);
        }
        // With several delaying limits, the shortest maximum applies.
        let mut maxima = self
            .acquisition
            .rejecting()
            .map(|(counted, _)| counted.limit.delay_max());
        let fits = maxima.all(|most| self.delayed + longest <= most);
        fits.then_some(longest)
    }

    /// Returns the action for a request that is over a limit and not delayed.
    fn action_over_limit(&self, limiter: &Limiter) -> RequestAction {
        let on_limit = |expected: OnLimit| {
            let mut rejecting = self.acquisition.rejecting();
            rejecting.any(|(counted, _)| counted.limit.on_limit == expected)
        };
        let can_wait = !self.is_inside && limiter.has_rooms();
        if can_wait && on_limit(OnLimit::Wait) && !on_limit(OnLimit::Reject) {
            RequestAction::Queue
        } else {
            RequestAction::Reject
        }
    }

    fn count_skipped(&self) {
        for (limit, event) in &self.skipped {
            limit.kept.counters.count(*event);
        }
    }

    /// Counts the request as allowed, after it waited for another `delayed`.
    pub(crate) fn count_allowed(&mut self, limiter: &Limiter, delayed: Duration) {
        self.count_skipped();
        self.delayed += delayed;
        let event = if self.delayed.is_zero() {
            Event::Allow
        } else {
            Event::Delay
        };
        // Clients of one limit are adjacent.
        let mut last: Option<CoveredLimit<'_>> = None;
        for (counted, _) in self.acquisition.verdicts() {
            if last.is_none_or(|last| !last.is_same_limit(&counted)) {
                counted.limit.kept.counters.count(event);
            }
            last = Some(counted);
        }
        let mut uncounted = self.acquisition.uncounted.clone();
        uncounted.dedup_by(|one, other| std::ptr::eq(*one, *other));
        for limit in uncounted {
            limit.kept.counters.count(Event::Uncounted);
        }
        for shadow in &self.shadows {
            shadow.count_shadow(limiter);
        }
    }

    /// Counts `event` at the limits that rejected the request.
    pub(crate) fn count_over_limit(&self, event: Event) {
        self.count_skipped();
        if let Some(early_rejection) = self.early_rejection {
            early_rejection.limit().kept.counters.count(event);
        }
        let rejecting = self.acquisition.rejecting();
        let mut limits: Vec<_> = rejecting.map(|(counted, _)| counted).collect();
        limits.dedup_by(|one, other| one.is_same_limit(other));
        for CoveredLimit { limit, .. } in limits {
            limit.kept.counters.count(event);
        }
    }

    /// Writes a line to the access log, because the layers behind this one do not see the request.
    pub(crate) fn log(&self, request: &RequestView<'_>, status: StatusCode) {
        if !access_log::is_enabled() {
            return;
        }
        let mut rejecting = self.acquisition.rejecting();
        let limit = match self.early_rejection {
            Some(early_rejection) => Some(early_rejection.limit()),
            None => rejecting.next().map(|(counted, _)| counted.limit),
        };
        let verdict = match self.early_rejection {
            Some(EarlyRejection::Unavailable(_)) => "limit_unavailable",
            Some(EarlyRejection::MissingKey(_)) | None => "over_limit",
        };
        access_log::write(&AccessLine {
            client: Some(request.client.address),
            status: Some(status.as_u16()),
            limit: limit.map(|limit| &*limit.name),
            ..AccessLine::new(
                request.method.as_str(),
                &access_log::printable(request.path),
                verdict,
            )
        });
    }

    /// Returns the outcome of each limit, for the client of that limit that is nearest to it.
    pub(crate) fn outcomes(&self) -> SmallVec<[LimitOutcome<'_>; 2]> {
        let mut nearest: SmallVec<[(CoveredLimit<'_>, Verdict); 2]> = SmallVec::new();
        for (counted, verdict) in self.acquisition.verdicts() {
            let nearness = |verdict: &Verdict| (verdict.is_allowed(), verdict.remaining);
            match nearest.last_mut() {
                Some((known, known_verdict)) if known.is_same_limit(&counted) => {
                    if nearness(&verdict) < nearness(known_verdict) {
                        (*known, *known_verdict) = (counted, verdict);
                    }
                }
                _ => nearest.push((counted, verdict)),
            }
        }
        let nearest = nearest.into_iter();
        nearest
            .map(|(CoveredLimit { limit, key }, verdict)| limit.outcome(key, verdict))
            .collect()
    }
}

/// Returns the time until all verdicts allow the request; `None` if one never will.
fn wait_of(verdicts: impl IntoIterator<Item = Verdict>) -> Option<DurationUs> {
    let mut longest = DurationUs::ZERO;
    for verdict in verdicts {
        match verdict.outcome {
            Outcome::Allow { delay } => longest = longest.max(delay),
            Outcome::Reject { retry_after } => longest = longest.max(retry_after?),
        }
    }
    Some(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit_headers::tests::{admitted, rejected};

    #[test]
    fn the_longest_wait_counts_and_never_is_longest() {
        let delayed = Verdict {
            outcome: Outcome::Allow {
                delay: DurationUs(9),
            },
            ..rejected(None)
        };
        let short = rejected(Some(DurationUs(5)));
        assert_eq!(wait_of([short, delayed]), Some(DurationUs(9)));
        assert_eq!(wait_of([short, rejected(None)]), None);
        assert_eq!(
            wait_of([admitted(1, DurationUs(7))]),
            Some(DurationUs::ZERO)
        );
    }
}
