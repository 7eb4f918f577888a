//! One call: which limits count it, whom they count it to, and what becomes of it.

use std::time::Duration;

use anteroom_config::OnLimit;
use anteroom_counts::local::{Charge, charge_all};
use anteroom_gateway::forwarded::Client;
use anteroom_gateway::path::Readings;
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::Policy;
use anteroom_limits::time::MicroSpan;
use anteroom_limits::verdict::{Outcome, Verdict};
use http::{Request, StatusCode};
use tracing::error;

use crate::answer::{self, Said};
use crate::caller::Caller;
use crate::limit::{Limit, Whom};
use crate::meter::{Meter, Plan};
use crate::tally::Event;

/// What the paths of waiting rooms begin with, by which waiting pages ask.
const POLLING: &str = "/.well-known/anteroom/";

/// A limit that counts a call, and whom it counts it to.
struct Counted<'p> {
    limit: &'p Limit,
    charge: Charge<'p>,
}

impl<'p> Counted<'p> {
    fn policy(&self) -> &'p Policy {
        self.charge.policy
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
    verdicts: Vec<Verdict>,
    is_inside: bool,
    /// A limit that refuses it without counting it.
    pub(crate) refused_by: Option<&'p Limit>,
}

impl<'p> Call<'p> {
    /// Finds out which limits count a request, and charges those that only look.
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
        let is_polling = path.starts_with(POLLING);
        let covering = |limit: &&Limit| {
            (limit.counts_polling || !is_polling)
                && limit
                    .covers
                    .contain(request.method(), client.host(), &readings)
        };
        let mut call = Self {
            counted: Vec::new(),
            verdicts: Vec::new(),
            is_inside: false,
            refused_by: None,
        };
        let visitor = plan
            .needs_visitor
            .then(|| meter.visitor(client, &readings, request.headers()))
            .flatten();
        call.is_inside = visitor.is_some_and(|visitor| visitor.is_inside);
        let caller = Caller {
            address: client.address,
            headers: request.headers(),
            path: readings.normal(),
            visitor: visitor.map(|visitor| visitor.id),
        };
        let now = meter.now();
        for limit in plan.limits.iter().filter(covering) {
            match limit.whom(&caller) {
                Whom::Nobody => limit.kept.tally.count(Event::Skip),
                Whom::Refused if limit.is_shadow => limit.kept.tally.count(Event::Shadow),
                Whom::Refused => call.refused_by = call.refused_by.or(Some(limit)),
                Whom::Client {
                    key,
                    policy,
                    is_own,
                } => {
                    let charge = limit.charge(key, policy, is_own);
                    if limit.is_shadow {
                        let went = charge_all(&[charge], now, &mut call.verdicts);
                        limit
                            .kept
                            .tally
                            .count(if went { Event::Admit } else { Event::Shadow });
                    } else {
                        call.counted.push(Counted { limit, charge });
                    }
                }
            }
        }
        call.verdicts.clear();
        Ok(call)
    }

    /// Charges all limits or none, and holds the call as long as it may be held.
    pub(crate) async fn settle(&mut self, meter: &Meter) -> Fate {
        if let Some(limit) = self.refused_by {
            limit.kept.tally.count(Event::Reject);
            self.counted.clear();
            return Fate::Refuse;
        }
        let charges: Vec<Charge<'_>> = self.counted.iter().map(|counted| counted.charge).collect();
        let mut waited = Duration::ZERO;
        loop {
            let is_admitted = charge_all(&charges, meter.now(), &mut self.verdicts);
            let wait = answer::wait_of(&self.verdicts).map(duration);
            if is_admitted && wait == Some(Duration::ZERO) {
                let was_held = !waited.is_zero();
                self.count_all(if was_held { Event::Delay } else { Event::Admit });
                return Fate::Go(Duration::ZERO);
            }
            let patience = self.patience().saturating_sub(waited);
            match (is_admitted, wait.filter(|wait| *wait <= patience)) {
                (true, Some(wait)) => {
                    self.count_all(Event::Delay);
                    return Fate::Go(wait);
                }
                // Longer than it is held: it gives its place in the line back.
                (true, None) => self.refund(meter, &charges),
                (false, Some(wait)) => {
                    tokio::time::sleep(wait).await;
                    waited += wait;
                    continue;
                }
                (false, None) => {}
            }
            return self.refuse();
        }
    }

    /// How long the call may be held: as long as each limit that holds it back would.
    fn patience(&self) -> Duration {
        let holding = self
            .counted
            .iter()
            .zip(&self.verdicts)
            .filter(|(_, verdict)| is_held_by(verdict));
        let patience = holding.map(|(counted, _)| match counted.limit.on_limit {
            OnLimit::Delay { max } => Duration::from_millis(max.0),
            OnLimit::Reject | OnLimit::Wait => Duration::ZERO,
        });
        patience.min().unwrap_or_default()
    }

    fn refuse(&self) -> Fate {
        let rejecting = || {
            self.counted
                .iter()
                .zip(&self.verdicts)
                .filter(|(_, verdict)| is_held_by(verdict))
        };
        debug_assert!(rejecting().next().is_some(), "somebody has rejected it");
        let goes_to_wait = !self.is_inside
            && rejecting().all(|(counted, _)| counted.limit.on_limit == OnLimit::Wait);
        let (event, fate) = if goes_to_wait {
            (Event::Wait, Fate::Wait)
        } else {
            (Event::Reject, Fate::Refuse)
        };
        for (counted, _) in rejecting() {
            counted.limit.kept.tally.count(event);
        }
        fate
    }

    fn refund(&mut self, meter: &Meter, charges: &[Charge<'_>]) {
        let now = meter.now();
        for (charge, verdict) in charges.iter().zip(&mut self.verdicts) {
            let Cost::Take(taken) = charge.cost else {
                continue;
            };
            let Charge {
                counts,
                policy,
                is_own,
                key,
                ..
            } = *charge;
            let after = counts.charge(policy, is_own, key, now, Cost::Refund(taken));
            // What it was told holds: so long it would have waited.
            let outcome = match verdict.outcome {
                Outcome::Admit { delay } if delay > MicroSpan::ZERO => Outcome::Reject {
                    retry_after: Some(delay),
                },
                outcome => outcome,
            };
            *verdict = Verdict { outcome, ..after };
        }
    }

    fn count_all(&self, event: Event) {
        for counted in &self.counted {
            counted.limit.kept.tally.count(event);
        }
    }

    /// A line in the access log: what is behind this layer does not see the call.
    pub(crate) fn log<B>(&self, request: &Request<B>, status: StatusCode) {
        let client = request.extensions().get::<Client>();
        let rejecting = self
            .counted
            .iter()
            .zip(&self.verdicts)
            .find(|(_, verdict)| is_held_by(verdict));
        let limit = self
            .refused_by
            .or_else(|| rejecting.map(|(counted, _)| counted.limit));
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

    pub(crate) fn said(&self) -> Vec<Said<'_>> {
        let all = self.counted.iter().zip(&self.verdicts);
        all.map(|(counted, verdict)| counted.limit.said(counted.policy(), *verdict))
            .collect()
    }
}

/// Whether a limit holds a call back, for a while or for good.
fn is_held_by(verdict: &Verdict) -> bool {
    match verdict.outcome {
        Outcome::Admit { delay } => delay > MicroSpan::ZERO,
        Outcome::Reject { .. } => true,
    }
}

/// A timer's span; never shorter, or it would be asked once more in vain.
fn duration(span: MicroSpan) -> Duration {
    Duration::from_micros(span.0)
}
