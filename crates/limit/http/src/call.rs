//! One call: which limits count it, whom they count it to, and what becomes of it.
//!
//! If several limits are against it, the strictest has its way: one that rejects before one that
//! makes wait, and that before one that holds. Limits that only look are charged for what the
//! others let through.

use std::time::Duration;

use anteroom_config::OnLimit;
use anteroom_limit::registry::Early;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_proxy::path::Readings;
use anteroom_proxy::request_context::RequestContext;
use http::{Request, StatusCode};
use smallvec::SmallVec;
use tokio::time::Instant;
use tracing::error;

use crate::caller::ClientRequest;
use crate::charging::{AcquireOutcome, Acquisition};
use crate::counted::CoveredLimit;
use crate::counters::Event;
use crate::limit::{ClientIdentity, Limit};
use crate::meter::Limiter;
use crate::plan::Plan;
use crate::rate_limit_headers::LimitOutcome;
use crate::tokens::ShownTokens;

/// A call that is held asks again no sooner than after this part of the time for which it has been
/// held: a few dozen times in all, however many are held at once.
const HELD_PART: u32 = 8;

/// What is to become of a call.
pub(crate) enum Fate {
    /// It goes on, after so long.
    Go(Duration),
    /// It goes on into the waiting room.
    Wait,
    /// It is sent away.
    Refuse,
}

/// Why a call is refused before any limit has said anything.
#[derive(Clone, Copy)]
pub(crate) enum Refusal<'p> {
    /// It lacks what this limit tells clients apart by.
    Incomplete(&'p Limit),
    /// This limit could not be asked, and lets nothing through then.
    Away(&'p Limit),
}

impl<'p> Refusal<'p> {
    pub(crate) const fn limit(self) -> &'p Limit {
        match self {
            Self::Incomplete(limit) | Self::Away(limit) => limit,
        }
    }
}

/// One call, and the limits that count it.
pub(crate) struct LimitedRequest<'p> {
    charges: Acquisition<'p>,
    /// Those that only look.
    looking: Vec<CoveredLimit<'p>>,
    /// Those that have nothing to say, and why.
    unasked: Vec<(&'p Limit, Event)>,
    is_inside: bool,
    /// Some are against it, and the others were not asked.
    is_over_early: bool,
    pub(crate) refusal: Option<Refusal<'p>>,
    held: Duration,
}

impl<'p> LimitedRequest<'p> {
    /// Finds out which limits count a request.
    pub(crate) fn of<B>(
        meter: &Limiter,
        plan: &'p Plan,
        request: &Request<B>,
    ) -> Result<Self, StatusCode> {
        let Some(RequestContext { client, .. }) = RequestContext::of(request) else {
            error!("a request came without its client: nobody can say whom to count it to");
            return Err(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let path = request.uri().path();
        let readings = Readings::under(meter.decoding(), path);
        let readings = readings.map_err(|_| StatusCode::BAD_REQUEST)?;
        let is_polling = meter.is_polling(path);
        let visitor = plan
            .needs_visitor
            .then(|| meter.visitor(client, &readings, request.headers()))
            .flatten();
        let tokens = plan.tokens.as_deref();
        let now = tokens.map_or(0, |_| meter.wall_seconds());
        let tokens = ShownTokens::of(tokens, request.headers(), now);
        let caller = ClientRequest {
            address: client.address,
            headers: request.headers(),
            readings: &readings,
            tokens: &tokens,
            visitor: visitor.map(|visitor| visitor.id),
        };
        let mut call = Self {
            charges: Acquisition::default(),
            looking: Vec::new(),
            unasked: Vec::new(),
            is_inside: visitor.is_some_and(|visitor| visitor.is_inside),
            is_over_early: false,
            refusal: None,
            held: Duration::ZERO,
        };
        let method = request.method();
        let covering = plan.limits.iter().filter(|limit| {
            (limit.counts_polling || !is_polling)
                && limit.covers.contain(method, client.host(), &readings)
        });
        let covering: SmallVec<[&'p Limit; 4]> = covering.collect();
        call.is_over_early = call.is_over_before_tokens(&covering, &caller, meter);
        if !call.is_over_early {
            for limit in covering {
                call.meet(limit, limit.whom(&caller));
            }
        }
        Ok(call)
    }

    /// Whether limits that are counted here and need no token are against it already. To verify a
    /// signature costs a hundred times what they do, so whoever makes tokens up is stopped by them
    /// before. The others would change nothing but what is said: what rejects has its way over what
    /// makes wait, and none is charged.
    fn is_over_before_tokens(
        &mut self,
        covering: &[&'p Limit],
        caller: &ClientRequest<'_>,
        meter: &Limiter,
    ) -> bool {
        let is_asked = covering.iter().any(|limit| limit.needs_token());
        if !is_asked || !caller.tokens.are_to_be_verified() {
            return false;
        }
        let mut early = Acquisition::default();
        let alone = covering.iter().copied();
        let alone = alone.filter(|limit| limit.rejects_here() && !limit.needs_token());
        for limit in alone {
            if let ClientIdentity::Clients(keys) = limit.whom(caller) {
                let counted = keys.into_iter().map(|key| CoveredLimit { limit, key });
                early.counted.extend(counted);
            }
        }
        let is_over = early.are_over_here(meter);
        if is_over {
            self.charges = early;
        }
        is_over
    }

    fn meet(&mut self, limit: &'p Limit, whom: ClientIdentity) {
        match whom {
            ClientIdentity::Nobody => self.unasked.push((limit, Event::Skip)),
            ClientIdentity::Refused if limit.is_shadow => self.unasked.push((limit, Event::Shadow)),
            ClientIdentity::Refused => {
                self.refusal = self.refusal.or(Some(Refusal::Incomplete(limit)));
            }
            ClientIdentity::Clients(keys) => {
                let counted = keys.into_iter().map(|key| CoveredLimit { limit, key });
                if limit.is_shadow {
                    self.looking.extend(counted);
                } else {
                    self.charges.counted.extend(counted);
                }
            }
        }
    }

    /// Charges all limits or none, if that can be done at once and the call is not to be held.
    pub(crate) fn settle_now(&mut self, meter: &Limiter) -> Option<Fate> {
        if self.refusal.is_some() || self.is_over_early {
            self.note_unasked();
            return Some(Fate::Refuse);
        }
        let rejects = |counted: &CoveredLimit<'_>| counted.limit.on_limit == OnLimit::Reject;
        if !self.charges.counted.iter().all(rejects) {
            return None;
        }
        let charged = self.charges.charge_now(Duration::ZERO, meter)?;
        self.note_unasked();
        match charged {
            AcquireOutcome::All => Some(Fate::Go(Duration::ZERO)),
            AcquireOutcome::Over | AcquireOutcome::Away(_) => Some(Fate::Refuse),
        }
    }

    /// Charges all limits or none, and holds the call as long as it may be held.
    pub(crate) async fn settle(&mut self, meter: &Limiter) -> Fate {
        self.note_unasked();
        if self.refusal.is_some() || self.is_over_early {
            return Fate::Refuse;
        }
        loop {
            match self.charges.charge(self.held, meter).await {
                AcquireOutcome::All => {
                    let verdicts = self.charges.told().map(|(_, verdict)| verdict);
                    let wait = wait_of(verdicts).map(Duration::from);
                    return Fate::Go(wait.unwrap_or_default());
                }
                AcquireOutcome::Away(limit) => {
                    self.refusal = Some(Refusal::Away(limit));
                    return Fate::Refuse;
                }
                AcquireOutcome::Over => {}
            }
            let Some(wait) = self.wait_for_more() else {
                return self.against(meter);
            };
            let began = Instant::now();
            tokio::time::sleep(wait).await;
            self.held += began.elapsed();
        }
    }

    /// How long to hold a call that was rejected until it is asked for once more; `None` if it is
    /// not to be held.
    fn wait_for_more(&self) -> Option<Duration> {
        // All who are held are told the same moment, and few of them go: whoever has waited for
        // long asks more seldom.
        let mut longest = self.held / HELD_PART;
        for (counted, verdict) in self.charges.rejecting() {
            let Outcome::Reject {
                retry_after: Some(wait),
            } = verdict.outcome
            else {
                return None;
            };
            let wait = Duration::from(wait);
            let left = counted.limit.patience().saturating_sub(self.held);
            // A leaky bucket has said already that there is no place in its line.
            let has_line = counted.limit.policy.row().early == Early::Waits;
            if has_line || wait > left {
                return None;
            }
            longest = longest.max(wait);
        }
        // Where several hold it, the shortest patience counts.
        let mut patience = self
            .charges
            .rejecting()
            .map(|(counted, _)| counted.limit.patience());
        let is_borne = patience.all(|most| self.held + longest <= most);
        is_borne.then_some(longest)
    }

    /// What becomes of a call that is over a limit and not held.
    fn against(&self, meter: &Limiter) -> Fate {
        let on_limit = |expected: OnLimit| {
            let mut rejecting = self.charges.rejecting();
            rejecting.any(|(counted, _)| counted.limit.on_limit == expected)
        };
        let can_wait = !self.is_inside && meter.has_rooms();
        if can_wait && on_limit(OnLimit::Wait) && !on_limit(OnLimit::Reject) {
            Fate::Wait
        } else {
            Fate::Refuse
        }
    }

    fn note_unasked(&mut self) {
        for (limit, event) in self.unasked.drain(..) {
            limit.kept.counters.count(event);
        }
    }

    /// It goes on now, after it was held for so long more.
    pub(crate) fn note_passed(&mut self, meter: &Limiter, held: Duration) {
        self.held += held;
        let event = if self.held.is_zero() {
            Event::Admit
        } else {
            Event::Delay
        };
        // Those of one limit stand one after the other.
        let mut last: Option<CoveredLimit<'_>> = None;
        for (counted, _) in self.charges.told() {
            if last.is_none_or(|last| !last.is_same_limit(&counted)) {
                counted.limit.kept.counters.count(event);
            }
            last = Some(counted);
        }
        let mut uncounted = self.charges.uncounted.clone();
        uncounted.dedup_by(|one, other| std::ptr::eq(*one, *other));
        for limit in uncounted {
            limit.kept.counters.count(Event::Uncounted);
        }
        for looking in &self.looking {
            looking.look(meter);
        }
    }

    /// It is over limits, and this is what came of it.
    pub(crate) fn note_over(&self, event: Event) {
        if let Some(refusal) = self.refusal {
            refusal.limit().kept.counters.count(event);
        }
        let rejecting = self.charges.rejecting();
        let mut limits: Vec<_> = rejecting.map(|(counted, _)| counted).collect();
        limits.dedup_by(|one, other| one.is_same_limit(other));
        for CoveredLimit { limit, .. } in limits {
            limit.kept.counters.count(event);
        }
    }

    /// A line in the access log: what is behind this layer does not see the call.
    pub(crate) fn log<B>(&self, request: &Request<B>, status: StatusCode) {
        let context = RequestContext::of(request);
        let mut rejecting = self.charges.rejecting();
        let limit = match self.refusal {
            Some(refusal) => Some(refusal.limit()),
            None => rejecting.next().map(|(counted, _)| counted.limit),
        };
        let verdict = match self.refusal {
            Some(Refusal::Away(_)) => "limit_unavailable",
            Some(Refusal::Incomplete(_)) | None => "over_limit",
        };
        tracing::info!(
            target: "access",
            client = context.map(|context| tracing::field::display(context.client.address)),
            method = %request.method(),
            path = %request.uri().path().escape_default(),
            status = status.as_u16(),
            verdict,
            limit = limit.map(|limit| &*limit.name),
        );
    }

    /// What the limits said, each once: to the client that is nearest to it.
    pub(crate) fn said(&self) -> SmallVec<[LimitOutcome<'_>; 2]> {
        let mut told: SmallVec<[(CoveredLimit<'_>, Verdict); 2]> = SmallVec::new();
        for (counted, verdict) in self.charges.told() {
            let nearness = |verdict: &Verdict| (verdict.is_admitted(), verdict.remaining);
            match told.last_mut() {
                Some((known, said)) if known.is_same_limit(&counted) => {
                    if nearness(&verdict) < nearness(said) {
                        (*known, *said) = (counted, verdict);
                    }
                }
                _ => told.push((counted, verdict)),
            }
        }
        let said = told.into_iter();
        said.map(|(CoveredLimit { limit, key }, verdict)| limit.said(key, verdict))
            .collect()
    }
}

/// How long a call that was rejected would have to wait, if it would ever be let through.
fn wait_of(verdicts: impl IntoIterator<Item = Verdict>) -> Option<DurationUs> {
    let mut longest = DurationUs::ZERO;
    for verdict in verdicts {
        match verdict.outcome {
            Outcome::Admit { delay } => longest = longest.max(delay),
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
            outcome: Outcome::Admit {
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
