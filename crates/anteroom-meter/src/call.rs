//! One call: which limits count it, whom they count it to, and what becomes of it.
//!
//! If several limits are against it, the strictest has its way: one that rejects before one that makes wait, and that
//! before one that holds. Limits that only look are charged for what the others let through.

use std::time::Duration;

use anteroom_config::OnLimit;
use anteroom_counts::CallKey;
use anteroom_counts::local::{Charge, charge_all};
use anteroom_gateway::forwarded::Client;
use anteroom_gateway::path::Readings;
use anteroom_limits::policy::Policy;
use anteroom_limits::verdict::{Outcome, Verdict};
use http::{Request, StatusCode};
use tokio::time::Instant;
use tracing::error;

use crate::answer::{self, Said};
use crate::caller::Caller;
use crate::limit::{Limit, Whom};
use crate::meter::{Meter, Plan};
use crate::tally::Event;
use crate::tokens::ShownTokens;

/// A call that is held asks again no sooner than after this part of the time for which it has been held: a few dozen
/// times in all, however many are held at once.
const HELD_PART: u32 = 8;

/// A limit that counts a call, and whom it counts it to.
#[derive(Clone, Copy)]
struct Counted<'p> {
    limit: &'p Limit,
    key: CallKey,
}

impl Counted<'_> {
    /// Whether one limit counts a call to both.
    fn is_same_limit(&self, other: &Self) -> bool {
        std::ptr::eq(self.limit, other.limit)
    }
}

/// What is to become of a call.
pub(crate) enum Fate {
    /// It goes on, after so long.
    Go(Duration),
    /// It goes on into the waiting room.
    Wait,
    /// It is sent away.
    Refuse,
}

/// One call, and the limits that count it.
pub(crate) struct Call<'p> {
    counted: Vec<Counted<'p>>,
    /// Those that only look.
    looking: Vec<Counted<'p>>,
    /// What the first ones said, in their order; nothing before they were asked.
    verdicts: Vec<Verdict>,
    is_inside: bool,
    /// A limit that refuses it without counting it.
    pub(crate) refused_by: Option<&'p Limit>,
    held: Duration,
}

impl<'p> Call<'p> {
    /// Finds out which limits count a request.
    pub(crate) fn of<B>(
        meter: &Meter,
        plan: &'p Plan,
        request: &Request<B>,
    ) -> Result<Self, StatusCode> {
        let Some(client) = request.extensions().get::<Client>() else {
            error!("a request came without its client: nobody can say whom to count it to");
            return Err(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let path = request.uri().path();
        let readings = Readings::of(path).map_err(|_| StatusCode::BAD_REQUEST)?;
        let is_polling = meter.is_polling(path);
        let visitor = plan
            .needs_visitor
            .then(|| meter.visitor(client, &readings, request.headers()))
            .flatten();
        let tokens = plan.tokens.as_deref();
        let tokens = ShownTokens::of(tokens, request.headers(), meter.wall_seconds());
        let caller = Caller {
            address: client.address,
            headers: request.headers(),
            readings: &readings,
            tokens: &tokens,
            visitor: visitor.map(|visitor| visitor.id),
        };
        let mut call = Self {
            counted: Vec::new(),
            looking: Vec::new(),
            verdicts: Vec::new(),
            is_inside: visitor.is_some_and(|visitor| visitor.is_inside),
            refused_by: None,
            held: Duration::ZERO,
        };
        let method = request.method();
        let covering = plan.limits.iter().filter(|limit| {
            (limit.counts_polling || !is_polling)
                && limit.covers.contain(method, client.host(), &readings)
        });
        for limit in covering {
            call.meet(limit, limit.whom(&caller));
        }
        Ok(call)
    }

    fn meet(&mut self, limit: &'p Limit, whom: Whom) {
        match whom {
            Whom::Nobody => limit.kept.tally.count(Event::Skip),
            Whom::Refused if limit.is_shadow => limit.kept.tally.count(Event::Shadow),
            Whom::Refused => self.refused_by = self.refused_by.or(Some(limit)),
            Whom::Clients(keys) => {
                let counted = keys.into_iter().map(|key| Counted { limit, key });
                if limit.is_shadow {
                    self.looking.extend(counted);
                } else {
                    self.counted.extend(counted);
                }
            }
        }
    }

    /// Charges all limits or none, and holds the call as long as it may be held.
    pub(crate) async fn settle(&mut self, meter: &Meter) -> Fate {
        if self.refused_by.is_some() {
            return Fate::Refuse;
        }
        loop {
            let counted = self.counted.iter();
            let charges: Vec<Charge<'_>> = counted
                .map(|Counted { limit, key }| limit.charge(*key, self.held))
                .collect();
            if charge_all(&charges, meter.now(), &mut self.verdicts) {
                let wait = answer::wait_of(&self.verdicts).map(Duration::from);
                return Fate::Go(wait.unwrap_or_default());
            }
            let Some(wait) = self.wait_for_more() else {
                return self.against();
            };
            let began = Instant::now();
            tokio::time::sleep(wait).await;
            self.held += began.elapsed();
        }
    }

    /// How long to hold a call that was rejected until it is asked for once more; `None` if it is not to be held.
    fn wait_for_more(&self) -> Option<Duration> {
        // All who are held are told the same moment, and few of them go: whoever has waited for long asks more
        // seldom.
        let mut longest = self.held / HELD_PART;
        for (counted, verdict) in self.rejecting() {
            let Outcome::Reject {
                retry_after: Some(wait),
            } = verdict.outcome
            else {
                return None;
            };
            let wait = Duration::from(wait);
            let left = counted.limit.patience().saturating_sub(self.held);
            // A leaky bucket has said already that there is no place in its line.
            let has_line = matches!(counted.limit.policy, Policy::LeakyBucket(_));
            if has_line || wait > left {
                return None;
            }
            longest = longest.max(wait);
        }
        // Where several hold it, the shortest patience counts.
        let mut patience = self
            .rejecting()
            .map(|(counted, _)| counted.limit.patience());
        let is_borne = patience.all(|most| self.held + longest <= most);
        is_borne.then_some(longest)
    }

    /// What becomes of a call that is over a limit and not held.
    fn against(&self) -> Fate {
        let on_limit = |expected: OnLimit| {
            let mut rejecting = self.rejecting();
            rejecting.any(|(counted, _)| counted.limit.on_limit == expected)
        };
        if !self.is_inside && on_limit(OnLimit::Wait) && !on_limit(OnLimit::Reject) {
            Fate::Wait
        } else {
            Fate::Refuse
        }
    }

    fn rejecting(&self) -> impl Iterator<Item = (&Counted<'p>, &Verdict)> {
        let all = self.counted.iter().zip(&self.verdicts);
        all.filter(|(_, verdict)| !verdict.is_admitted())
    }

    /// It goes on now, after it was held for so long more.
    pub(crate) fn note_passed(&mut self, meter: &Meter, held: Duration) {
        self.held += held;
        let event = if self.held.is_zero() {
            Event::Admit
        } else {
            Event::Delay
        };
        for each in self.counted.chunk_by(Counted::is_same_limit) {
            each[0].limit.kept.tally.count(event);
        }
        for Counted { limit, key } in &self.looking {
            let verdict = limit
                .kept
                .counts
                .charge(&limit.charge(*key, Duration::ZERO), meter.now());
            let is_free = matches!(verdict.outcome, Outcome::Admit { delay } if delay.0 == 0);
            let event = if is_free { Event::Admit } else { Event::Shadow };
            limit.kept.tally.count(event);
        }
    }

    /// It is over limits, and this is what came of it.
    pub(crate) fn note_over(&self, event: Event) {
        if let Some(limit) = self.refused_by {
            limit.kept.tally.count(event);
        }
        let mut limits: Vec<_> = self.rejecting().map(|(counted, _)| *counted).collect();
        limits.dedup_by(|one, other| one.is_same_limit(other));
        for Counted { limit, .. } in limits {
            limit.kept.tally.count(event);
        }
    }

    /// A line in the access log: what is behind this layer does not see the call.
    pub(crate) fn log<B>(&self, request: &Request<B>, status: StatusCode) {
        let client = request.extensions().get::<Client>();
        let rejecting = self.rejecting().map(|(counted, _)| counted.limit).next();
        let limit = self.refused_by.or(rejecting);
        tracing::info!(
            target: "access",
            client = client.map(|client| tracing::field::display(client.address)),
            method = %request.method(),
            path = %request.uri().path().escape_default(),
            status = status.as_u16(),
            verdict = "over_limit",
            limit = limit.map(|limit| &*limit.name),
        );
    }

    /// What the limits said, each once: to the client that is nearest to it.
    pub(crate) fn said(&self) -> Vec<Said<'_>> {
        let mut told: Vec<(&Counted<'_>, &Verdict)> = Vec::with_capacity(self.counted.len());
        for (counted, verdict) in self.counted.iter().zip(&self.verdicts) {
            let nearness = |verdict: &Verdict| (verdict.is_admitted(), verdict.remaining);
            match told.last_mut() {
                Some((known, said)) if known.is_same_limit(counted) => {
                    if nearness(verdict) < nearness(said) {
                        (*known, *said) = (counted, verdict);
                    }
                }
                _ => told.push((counted, verdict)),
            }
        }
        let said = told.into_iter();
        said.map(|(Counted { limit, key }, verdict)| limit.said(*key, *verdict))
            .collect()
    }
}
