//! Decision about a request: it acquires from all limits that it matches, or from none.
//!
//! The reference service takes from each descriptor even if another one rejects the request. Here a
//! rejected request costs nothing, so that a client over one limit does not use up its others.
//! `charge_rejected` selects the reference's behavior, for those that count events that have
//! already happened.
//!
//! Shadow limits are acquired for requests that are admitted, and so are refunds. Of the quota
//! limits, one with something left is enough.

use crate::config::AppliedLimit;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::CountsError;

use crate::counting::{Counts, LocalAcquire};

/// Limit that a request matches.
#[derive(Debug)]
pub(crate) struct MatchedLimit<'l> {
    pub(crate) limit: &'l AppliedLimit<'l>,
    pub(crate) policy: Policy,
    pub(crate) key: ClientKey,
    pub(crate) cost: Cost,
}

/// Role of a limit in the decision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LimitRole {
    /// Rejects alone.
    Plain,
    /// Rejects together with all other quota limits.
    Quota,
    /// Role of a limit that never rejects.
    None,
}

/// Decision about a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestVerdict {
    /// Whether the request is over its limits.
    pub(crate) is_over: bool,
    /// Verdicts of the limits, in order.
    pub(crate) verdicts: Vec<Verdict>,
}

/// Options of the decision.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DecisionOptions {
    /// Whether requests over a limit are admitted all the same.
    pub(crate) is_shadow: bool,
    /// Whether rejected requests take what is left.
    pub(crate) charges_rejected: bool,
}

impl MatchedLimit<'_> {
    const fn acquire(&self) -> LocalAcquire<'_> {
        let Self {
            policy, key, cost, ..
        } = self;
        LocalAcquire {
            policy,
            key: *key,
            cost: *cost,
        }
    }

    const fn role(&self) -> LimitRole {
        match self.cost {
            Cost::Refund(_) => LimitRole::None,
            _ if self.limit.is_shadow => LimitRole::None,
            _ if self.limit.is_quota => LimitRole::Quota,
            _ => LimitRole::Plain,
        }
    }
}

impl RequestVerdict {
    /// Returns the delay of the request. It is zero, except in the queue of a leaky bucket.
    pub(crate) fn delay(&self, met: &[MatchedLimit<'_>]) -> DurationUs {
        let verdicts = met.iter().zip(&self.verdicts);
        let deciding = verdicts.filter(|(met, _)| met.role() != LimitRole::None);
        let delays = deciding.map(|(_, verdict)| match verdict.outcome {
            Outcome::Allow { delay } => delay,
            Outcome::Reject { .. } => DurationUs::ZERO,
        });
        delays.max().unwrap_or_default()
    }
}

/// Decides about a request, and acquires what it costs.
pub(crate) async fn decide(
    counts: &Counts,
    met: &[MatchedLimit<'_>],
    options: DecisionOptions,
    now: TimestampUs,
) -> Result<RequestVerdict, CountsError> {
    let is_plain = |met: &MatchedLimit<'_>| met.role() == LimitRole::Plain;
    if !options.charges_rejected && met.iter().all(is_plain) {
        // The usual case: all are acquired or none, and no further step is needed.
        let acquires: Vec<LocalAcquire<'_>> = met.iter().map(MatchedLimit::acquire).collect();
        let verdicts = counts.charge_all(&acquires, now).await?;
        return Ok(RequestVerdict {
            is_over: !verdicts.iter().all(Verdict::is_allowed),
            verdicts,
        });
    }
    let mut decider = Decider {
        counts,
        met,
        now,
        verdicts: vec![None; met.len()],
    };
    let is_over = if options.charges_rejected {
        decider.each_alone().await?
    } else {
        decider.all_or_none(options.is_shadow).await?
    };
    let verdicts = decider.verdicts.into_iter();
    let verdicts = verdicts.map(|verdict| verdict.expect("each has a verdict"));
    Ok(RequestVerdict {
        is_over,
        verdicts: verdicts.collect(),
    })
}

struct Decider<'j> {
    counts: &'j Counts,
    met: &'j [MatchedLimit<'j>],
    now: TimestampUs,
    verdicts: Vec<Option<Verdict>>,
}

impl<'j> Decider<'j> {
    async fn all_or_none(&mut self, is_shadow: bool) -> Result<bool, CountsError> {
        let [plain, quotas, roleless] =
            [LimitRole::Plain, LimitRole::Quota, LimitRole::None].map(|role| self.of(role));
        let acquires = self.acquires(&plain);
        let verdicts = self.counts.charge_all(&acquires, self.now).await?;
        let mut is_over = !verdicts.iter().all(Verdict::is_allowed);
        self.record(&plain, verdicts);
        if is_over {
            self.peek(&quotas).await?;
        } else if !quotas.is_empty() {
            let acquires = self.acquires(&quotas);
            let verdicts = self.counts.acquire_each(&acquires, self.now).await?;
            is_over = !verdicts.iter().any(Verdict::is_allowed);
            self.record(&quotas, verdicts);
            if is_over {
                self.refund(&plain).await?;
            }
        }
        if is_over && !is_shadow {
            self.peek(&roleless).await?;
        } else {
            let acquires = self.acquires(&roleless);
            let verdicts = self.counts.acquire_each(&acquires, self.now).await?;
            self.record(&roleless, verdicts);
        }
        Ok(is_over)
    }

    /// Acquires from each limit whatever the others decide, like the reference; and takes what is
    /// left where that is not enough.
    async fn each_alone(&mut self) -> Result<bool, CountsError> {
        let everything: Vec<usize> = (0..self.met.len()).collect();
        let acquires = self.acquires(&everything);
        let verdicts = self.counts.acquire_each(&acquires, self.now).await?;
        let short: Vec<LocalAcquire<'_>> = acquires
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| !verdict.is_allowed() && verdict.remaining > 0)
            .filter_map(|(acquire, verdict)| match acquire.cost {
                Cost::Take(_) => Some(LocalAcquire {
                    cost: Cost::take(verdict.remaining),
                    ..*acquire
                }),
                Cost::Peek | Cost::Refund(_) => None,
            })
            .collect();
        self.counts.acquire_each(&short, self.now).await?;
        self.record(&everything, verdicts);
        let rejects = |at: &usize| !self.verdict(*at).is_allowed();
        let (plain, quotas) = (self.of(LimitRole::Plain), self.of(LimitRole::Quota));
        let is_plain_over = plain.iter().any(rejects);
        let is_quota_over = !quotas.is_empty() && quotas.iter().all(rejects);
        Ok(is_plain_over || is_quota_over)
    }

    fn of(&self, role: LimitRole) -> Vec<usize> {
        let all = self.met.iter().enumerate();
        let of = all.filter(|(_, met)| met.role() == role);
        of.map(|(at, _)| at).collect()
    }

    fn acquires(&self, which: &[usize]) -> Vec<LocalAcquire<'j>> {
        let met: &'j [MatchedLimit<'j>] = self.met;
        which.iter().map(|at| met[*at].acquire()).collect()
    }

    fn verdict(&self, at: usize) -> &Verdict {
        self.verdicts[at].as_ref().expect("it has a verdict")
    }

    fn record(&mut self, which: &[usize], verdicts: Vec<Verdict>) {
        for (at, verdict) in which.iter().zip(verdicts) {
            self.verdicts[*at] = Some(verdict);
        }
    }

    /// Peeks at these limits.
    async fn peek(&mut self, which: &[usize]) -> Result<(), CountsError> {
        let acquires = self.acquires(which);
        let peeks: Vec<_> = acquires
            .iter()
            .map(|acquire| LocalAcquire {
                cost: Cost::Peek,
                ..*acquire
            })
            .collect();
        let verdicts = self.counts.charge_all(&peeks, self.now).await?;
        self.record(which, verdicts);
        Ok(())
    }

    /// Refunds what these limits took. Their verdicts stay admitting.
    async fn refund(&mut self, which: &[usize]) -> Result<(), CountsError> {
        let acquires = self.acquires(which);
        let refunds: Vec<_> = acquires
            .iter()
            .filter_map(|acquire| match acquire.cost {
                Cost::Take(taken) => Some(LocalAcquire {
                    cost: Cost::Refund(taken),
                    ..*acquire
                }),
                Cost::Peek | Cost::Refund(_) => None,
            })
            .collect();
        self.counts.charge_all(&refunds, self.now).await?;
        let outcomes: Vec<Outcome> = which.iter().map(|at| self.verdict(*at).outcome).collect();
        self.peek(which).await?;
        for (at, outcome) in which.iter().zip(outcomes) {
            if let Some(verdict) = &mut self.verdicts[*at] {
                verdict.outcome = outcome;
            }
        }
        Ok(())
    }
}
