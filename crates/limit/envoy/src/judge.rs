//! Does a request go through? All limits that it meets are charged, or none of them.
//!
//! The reference charges each descriptor, also where another one rejects the request. Here a
//! request that is rejected costs nothing, so that a client that is over one limit does not use up
//! its others; who wants the reference's way says so (`charge_rejected`), as those must who charge
//! for what has happened already.
//!
//! Limits that only look (shadow) are charged for requests that go through, and so is what a
//! request gives back. Of limits that are quotas one that has something left is enough.

use crate::config::AppliedLimit;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::CountsError;

use crate::counting::{Counts, LocalAcquire};

/// A limit that a request meets.
#[derive(Debug)]
pub(crate) struct MatchedLimit<'l> {
    pub(crate) limit: &'l AppliedLimit<'l>,
    pub(crate) policy: Policy,
    pub(crate) key: CallKey,
    pub(crate) cost: Cost,
}

/// What a limit has to say in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LimitVerdict {
    /// It rejects.
    Plain,
    /// It rejects together with all others of its kind.
    Quota,
    /// Nothing.
    None,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestVerdict {
    /// Whether it is over its limits.
    pub(crate) is_over: bool,
    /// What each limit said, in their order.
    pub(crate) verdicts: Vec<Verdict>,
}

/// How requests are judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Nobody is rejected.
    pub(crate) is_shadow: bool,
    /// What is rejected is charged, too: as much as is left.
    pub(crate) charges_rejected: bool,
}

impl MatchedLimit<'_> {
    const fn charge(&self) -> LocalAcquire<'_> {
        let Self {
            policy, key, cost, ..
        } = self;
        LocalAcquire {
            policy,
            key: *key,
            cost: *cost,
        }
    }

    const fn say(&self) -> LimitVerdict {
        match self.cost {
            Cost::Refund(_) => LimitVerdict::None,
            _ if self.limit.is_shadow => LimitVerdict::None,
            _ if self.limit.is_quota => LimitVerdict::Quota,
            _ => LimitVerdict::Plain,
        }
    }
}

impl RequestVerdict {
    /// How long the request is to be held: longer than nothing only in the line of a leaky bucket.
    pub(crate) fn hold(&self, met: &[MatchedLimit<'_>]) -> DurationUs {
        let said = met.iter().zip(&self.verdicts);
        let held = said.filter(|(met, _)| met.say() != LimitVerdict::None);
        let delays = held.map(|(_, verdict)| match verdict.outcome {
            Outcome::Admit { delay } => delay,
            Outcome::Reject { .. } => DurationUs::ZERO,
        });
        delays.max().unwrap_or_default()
    }
}

/// Judges a request, and charges what it is to be charged.
pub(crate) async fn judge(
    counts: &Counts,
    met: &[MatchedLimit<'_>],
    manner: Manner,
    now: TimestampUs,
) -> Result<RequestVerdict, CountsError> {
    let is_plain = |met: &MatchedLimit<'_>| met.say() == LimitVerdict::Plain;
    if !manner.charges_rejected && met.iter().all(is_plain) {
        // Nearly always. All are charged or none, and then there is nothing left to ask.
        let charges: Vec<LocalAcquire<'_>> = met.iter().map(MatchedLimit::charge).collect();
        let verdicts = counts.charge_all(&charges, now).await?;
        return Ok(RequestVerdict {
            is_over: !verdicts.iter().all(Verdict::is_admitted),
            verdicts,
        });
    }
    let mut judging = Judging {
        counts,
        met,
        now,
        verdicts: vec![None; met.len()],
    };
    let is_over = if manner.charges_rejected {
        judging.each_alone().await?
    } else {
        judging.all_or_none(manner.is_shadow).await?
    };
    let verdicts = judging.verdicts.into_iter();
    let verdicts = verdicts.map(|verdict| verdict.expect("each was asked"));
    Ok(RequestVerdict {
        is_over,
        verdicts: verdicts.collect(),
    })
}

struct Judging<'j> {
    counts: &'j Counts,
    met: &'j [MatchedLimit<'j>],
    now: TimestampUs,
    verdicts: Vec<Option<Verdict>>,
}

impl<'j> Judging<'j> {
    async fn all_or_none(&mut self, is_shadow: bool) -> Result<bool, CountsError> {
        let [plain, quotas, silent] =
            [LimitVerdict::Plain, LimitVerdict::Quota, LimitVerdict::None].map(|say| self.of(say));
        let charges = self.charges(&plain);
        let said = self.counts.charge_all(&charges, self.now).await?;
        let mut is_over = !said.iter().all(Verdict::is_admitted);
        self.note(&plain, said);
        if is_over {
            self.look(&quotas).await?;
        } else if !quotas.is_empty() {
            let charges = self.charges(&quotas);
            let said = self.counts.charge_each(&charges, self.now).await?;
            is_over = !said.iter().any(Verdict::is_admitted);
            self.note(&quotas, said);
            if is_over {
                self.take_back(&plain).await?;
            }
        }
        if is_over && !is_shadow {
            self.look(&silent).await?;
        } else {
            let charges = self.charges(&silent);
            let said = self.counts.charge_each(&charges, self.now).await?;
            self.note(&silent, said);
        }
        Ok(is_over)
    }

    /// As the reference: whatever others say, each is charged; with what is left, where that is not
    /// enough.
    async fn each_alone(&mut self) -> Result<bool, CountsError> {
        let everything: Vec<usize> = (0..self.met.len()).collect();
        let charges = self.charges(&everything);
        let said = self.counts.charge_each(&charges, self.now).await?;
        let short: Vec<LocalAcquire<'_>> = charges
            .iter()
            .zip(&said)
            .filter(|(_, verdict)| !verdict.is_admitted() && verdict.remaining > 0)
            .filter_map(|(charge, verdict)| match charge.cost {
                Cost::Take(_) => Some(LocalAcquire {
                    cost: Cost::take(verdict.remaining),
                    ..*charge
                }),
                Cost::Peek | Cost::Refund(_) => None,
            })
            .collect();
        self.counts.charge_each(&short, self.now).await?;
        self.note(&everything, said);
        let rejects = |at: &usize| !self.said(*at).is_admitted();
        let (plain, quotas) = (self.of(LimitVerdict::Plain), self.of(LimitVerdict::Quota));
        let is_plain_over = plain.iter().any(rejects);
        let is_quota_over = !quotas.is_empty() && quotas.iter().all(rejects);
        Ok(is_plain_over || is_quota_over)
    }

    fn of(&self, say: LimitVerdict) -> Vec<usize> {
        let all = self.met.iter().enumerate();
        let of = all.filter(|(_, met)| met.say() == say);
        of.map(|(at, _)| at).collect()
    }

    fn charges(&self, which: &[usize]) -> Vec<LocalAcquire<'j>> {
        let met: &'j [MatchedLimit<'j>] = self.met;
        which.iter().map(|at| met[*at].charge()).collect()
    }

    fn said(&self, at: usize) -> &Verdict {
        self.verdicts[at].as_ref().expect("it was asked before")
    }

    fn note(&mut self, which: &[usize], said: Vec<Verdict>) {
        for (at, verdict) in which.iter().zip(said) {
            self.verdicts[*at] = Some(verdict);
        }
    }

    /// Asks how these stand, and charges nothing.
    async fn look(&mut self, which: &[usize]) -> Result<(), CountsError> {
        let charges = self.charges(which);
        let peeks: Vec<_> = charges
            .iter()
            .map(|charge| LocalAcquire {
                cost: Cost::Peek,
                ..*charge
            })
            .collect();
        let said = self.counts.charge_all(&peeks, self.now).await?;
        self.note(which, said);
        Ok(())
    }

    /// Gives back what these were charged. They keep saying that the request fitted.
    async fn take_back(&mut self, which: &[usize]) -> Result<(), CountsError> {
        let charges = self.charges(which);
        let refunds: Vec<_> = charges
            .iter()
            .filter_map(|charge| match charge.cost {
                Cost::Take(taken) => Some(LocalAcquire {
                    cost: Cost::Refund(taken),
                    ..*charge
                }),
                Cost::Peek | Cost::Refund(_) => None,
            })
            .collect();
        self.counts.charge_all(&refunds, self.now).await?;
        let outcomes: Vec<Outcome> = which.iter().map(|at| self.said(*at).outcome).collect();
        self.look(which).await?;
        for (at, outcome) in which.iter().zip(outcomes) {
            if let Some(verdict) = &mut self.verdicts[*at] {
                verdict.outcome = outcome;
            }
        }
        Ok(())
    }
}
