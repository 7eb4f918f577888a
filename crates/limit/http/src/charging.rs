//! Several limits charged as one, wherever each is counted: all of them, or none.
//!
//! What is counted here is charged under its locks, at once. Where some are counted elsewhere,
//! memory is only asked at first: most calls that are over a limit need not travel then. Then each
//! store charges its own, and at last memory does. Whoever rejects then has those refunded that
//! came before, so that others see a call that was rejected charged for a moment. A caller who goes
//! away in that moment stays charged: whether a store has charged it is not known before it
//! answers, and a refund of what was not charged would admit one too many.

use std::collections::VecDeque;
use std::time::Duration;

use anteroom_config::{OnLimit, OnLimitStoreFailure};
use anteroom_limit::cost::Cost;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit_store::local::{LocalAcquire, charge_all};
use anteroom_limit_store::shared::{CountsError, SharedAcquire};
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::counted::CoveredLimit;
use crate::limit::Limit;
use crate::meter::Limiter;
use crate::stores::Elsewhere;

/// What all limits together said.
#[derive(Clone, Copy)]
pub(crate) enum AcquireOutcome<'p> {
    /// All admit, and were charged.
    All,
    /// One rejects; none was charged.
    Over,
    /// One could not be asked, and lets nothing through then; none was charged.
    Away(&'p Limit),
}

impl AcquireOutcome<'_> {
    const fn of(is_admitted: bool) -> Self {
        if is_admitted { Self::All } else { Self::Over }
    }
}

/// The limits that count a call, and what they said.
#[derive(Default)]
pub(crate) struct Acquisition<'p> {
    pub(crate) counted: SmallVec<[CoveredLimit<'p>; 2]>,
    /// Those that could not be asked, and let calls through then.
    pub(crate) uncounted: Vec<&'p Limit>,
    /// What each said; nothing before it was asked.
    verdicts: SmallVec<[Option<Verdict>; 2]>,
}

impl<'p> Acquisition<'p> {
    /// Charges all or none, for a call that has been held for so long.
    pub(crate) async fn charge(&mut self, held: Duration, meter: &Limiter) -> AcquireOutcome<'p> {
        match self.charge_now(held, meter) {
            Some(charged) => charged,
            None => self.charge_everywhere(held, meter).await,
        }
    }

    /// The same at once, if all are counted here.
    pub(crate) fn charge_now(
        &mut self,
        held: Duration,
        meter: &Limiter,
    ) -> Option<AcquireOutcome<'p>> {
        self.uncounted.clear();
        self.verdicts.clear();
        let is_here = |counted: &CoveredLimit<'_>| counted.limit.elsewhere.is_none();
        if let [counted] = *self.counted
            && is_here(&counted)
        {
            let charge = counted.limit.charge(counted.key, held);
            let verdict = charge.counts.charge(&charge, meter.now());
            self.verdicts.push(Some(verdict));
            return Some(AcquireOutcome::of(verdict.is_admitted()));
        }
        self.verdicts.resize(self.counted.len(), None);
        if let [counted] = *self.counted {
            return self.charge_lent(counted);
        }
        if !self.counted.iter().all(is_here) {
            return None;
        }
        let all: SmallVec<[usize; 8]> = (0..self.counted.len()).collect();
        Some(self.charge_here(&all, held, meter.now()))
    }

    /// Whether memory is against it, where all limits are counted there; they have said so then as
    /// if others had not been asked. Otherwise nothing is charged.
    pub(crate) fn are_over_here(&mut self, meter: &Limiter) -> bool {
        let all: Vec<usize> = (0..self.counted.len()).collect();
        let now = meter.now();
        if !self.is_over_here(&all, Duration::ZERO, now) {
            return false;
        }
        self.verdicts.clear();
        self.verdicts.resize(self.counted.len(), None);
        if let AcquireOutcome::Over = self.charge_here(&all, Duration::ZERO, now) {
            return true;
        }
        // It became free in between.
        self.refund_here(&all, now);
        false
    }

    /// Charges one limit that is counted elsewhere, if its store can decide at once.
    fn charge_lent(&mut self, counted: CoveredLimit<'p>) -> Option<AcquireOutcome<'p>> {
        let elsewhere = counted.limit.elsewhere.as_ref()?;
        if elsewhere.is_shut(&counted.limit.name, counted.key) {
            return None;
        }
        let policy = counted.policy();
        let charge = counted.shared(&policy, counted.limit.cost);
        let mut verdicts = Vec::with_capacity(1);
        let decided = elsewhere.counts.charge_now(&[charge], &mut verdicts)?;
        // Who is told of a failure has charged nothing, and is told again.
        decided.ok()?;
        let verdict = *verdicts.first()?;
        counted.note_answer(elsewhere);
        self.verdicts[0] = Some(verdict);
        Some(AcquireOutcome::of(verdict.is_admitted()))
    }

    /// What limits said that were asked.
    pub(crate) fn told(&self) -> impl Iterator<Item = (CoveredLimit<'p>, Verdict)> {
        let all = self.counted.iter().copied().zip(&self.verdicts);
        all.filter_map(|(counted, verdict)| Some((counted, (*verdict)?)))
    }

    /// Those that reject it.
    pub(crate) fn rejecting(&self) -> impl Iterator<Item = (CoveredLimit<'p>, Verdict)> {
        self.told().filter(|(_, verdict)| !verdict.is_admitted())
    }

    async fn charge_everywhere(&mut self, held: Duration, meter: &Limiter) -> AcquireOutcome<'p> {
        let mut here: Vec<usize> = Vec::new();
        let mut elsewhere: Vec<usize> = Vec::new();
        for (at, counted) in self.counted.iter().enumerate() {
            let is_here = counted.limit.elsewhere.is_none();
            if is_here { &mut here } else { &mut elsewhere }.push(at);
        }
        let mut early: Vec<usize> = Vec::new();
        if self.is_over_here(&here, held, meter.now()) {
            if let AcquireOutcome::Over = self.charge_here(&here, held, meter.now()) {
                return AcquireOutcome::Over;
            }
            // It became free in between.
            early = std::mem::take(&mut here);
        }
        let began = Instant::now();
        let mut charged: Vec<Vec<usize>> = Vec::new();
        let mut fate = AcquireOutcome::All;
        let mut groups = self.by_store(elsewhere);
        while let Some(group) = groups.pop_front()
            && matches!(fate, AcquireOutcome::All)
        {
            if let Some(limit) = self.note_shut(&group) {
                fate = AcquireOutcome::Away(limit);
                continue;
            }
            match self.charge_at(self.store(group[0]), &group, held).await {
                Ok(true) => charged.push(group),
                Ok(false) => fate = AcquireOutcome::Over,
                // What one of them lacks others may have been lent, or their server is there: each
                // by itself then.
                Err(CountsError::Unreachable { .. }) if group.len() > 1 => {
                    for at in group.into_iter().rev() {
                        groups.push_front(vec![at]);
                    }
                }
                Err(error) => {
                    self.note_failure(&group, &error);
                    fate = match error {
                        // It is there. That is no reason to let the call pass uncounted.
                        CountsError::Busy { .. } => {
                            AcquireOutcome::Away(self.counted[group[0]].limit)
                        }
                        _ => self.do_without(&group, &mut here),
                    };
                }
            }
        }
        if matches!(fate, AcquireOutcome::All) {
            fate = self.charge_here(&here, held, meter.now());
        }
        if !matches!(fate, AcquireOutcome::All) {
            self.refund_here(&early, meter.now());
            for group in charged.iter().rev() {
                self.refund_at(self.store(group[0]), group, began).await;
            }
        }
        fate
    }

    /// Those of one store together.
    fn by_store(&self, mut elsewhere: Vec<usize>) -> VecDeque<Vec<usize>> {
        let mut groups = VecDeque::new();
        while let Some(first) = elsewhere.first() {
            let store = self.store(*first);
            let is_there = |at: &mut usize| self.store(*at).is_same_store(store);
            groups.push_back(elsewhere.extract_if(.., is_there).collect());
        }
        groups
    }

    /// Whether memory is against it, as far as can be told without charging.
    fn is_over_here(&self, here: &[usize], held: Duration, now: TimestampUs) -> bool {
        here.iter().any(|at| {
            let CoveredLimit { limit, key } = self.counted[*at];
            let cost = Cost::Peek;
            let charge = LocalAcquire {
                cost,
                ..limit.charge(key, held)
            };
            let verdict = limit.kept.counts.charge(&charge, now);
            // It was asked about a call that counts one.
            let is_short =
                limit.on_limit == OnLimit::Reject && verdict.remaining < least(limit.cost);
            is_short || !verdict.is_admitted()
        })
    }

    fn charge_here(
        &mut self,
        here: &[usize],
        held: Duration,
        now: TimestampUs,
    ) -> AcquireOutcome<'p> {
        let charges = here.iter().map(|at| {
            let CoveredLimit { limit, key } = self.counted[*at];
            limit.charge(key, held)
        });
        let charges: Vec<LocalAcquire<'_>> = charges.collect();
        let mut verdicts = Vec::with_capacity(charges.len());
        let is_admitted = charge_all(&charges, now, &mut verdicts);
        for (at, verdict) in here.iter().zip(verdicts) {
            self.verdicts[*at] = Some(verdict);
        }
        AcquireOutcome::of(is_admitted)
    }

    fn refund_here(&self, here: &[usize], now: TimestampUs) {
        for at in here {
            let CoveredLimit { limit, key } = self.counted[*at];
            let cost = refund(limit.cost);
            let charge = LocalAcquire {
                cost,
                ..limit.charge(key, Duration::ZERO)
            };
            limit.kept.counts.charge(&charge, now);
        }
    }

    /// Charges what one store counts: whether all admit.
    async fn charge_at(
        &mut self,
        store: &Elsewhere,
        group: &[usize],
        held: Duration,
    ) -> Result<bool, CountsError> {
        let began = Instant::now();
        let policies: Vec<_> = group.iter().map(|at| self.counted[*at].policy()).collect();
        let both = group.iter().zip(&policies);
        let charges: Vec<SharedAcquire<'_>> = both
            .map(|(at, policy)| {
                let counted = &self.counted[*at];
                counted.shared(policy, counted.limit.cost)
            })
            .collect();
        let verdicts = store.counts.charge(&charges).await?;
        let is_charged = verdicts.iter().all(Verdict::is_admitted);
        let mut is_admitted = true;
        for (at, verdict) in group.iter().zip(verdicts) {
            let counted = self.counted[*at];
            counted.note_answer(store);
            let limit = counted.limit;
            let verdict = within_patience(verdict, limit.patience().saturating_sub(held));
            is_admitted &= verdict.is_admitted();
            self.verdicts[*at] = Some(verdict);
        }
        if is_charged && !is_admitted {
            self.refund_at(store, group, began).await;
        }
        Ok(is_admitted)
    }

    /// Gives back what one store has charged. If that fails it stays charged: fewer are admitted
    /// then, and none too many.
    async fn refund_at(&self, store: &Elsewhere, group: &[usize], began: Instant) {
        let policies: Vec<_> = group.iter().map(|at| self.counted[*at].policy()).collect();
        let both = group.iter().zip(&policies);
        let charges: Vec<SharedAcquire<'_>> = both
            .map(|(at, policy)| {
                let counted = &self.counted[*at];
                counted.shared(policy, refund(counted.limit.cost))
            })
            .collect();
        let age = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let refunded = store
            .counts
            .refund(&charges, DurationUs(age.saturating_add(1)));
        if let Err(error) = refunded.await {
            self.note_failure(group, &error);
        }
    }

    fn note_failure(&self, group: &[usize], error: &CountsError) {
        for at in group {
            let limit = self.counted[*at].limit;
            limit.kept.contact.note_failure(&limit.name, error);
        }
    }

    /// What limits do whose store is away. Those that go on by themselves are added to `here`.
    fn do_without(&mut self, group: &[usize], here: &mut Vec<usize>) -> AcquireOutcome<'p> {
        for at in group {
            let limit = self.counted[*at].limit;
            let on_failure = limit.elsewhere.as_ref().map(|own| own.on_failure);
            match on_failure {
                Some(OnLimitStoreFailure::Open) => self.uncounted.push(limit),
                Some(OnLimitStoreFailure::Local) => here.push(*at),
                Some(OnLimitStoreFailure::Bounded | OnLimitStoreFailure::Closed) | None => {
                    return AcquireOutcome::Away(limit);
                }
            }
        }
        AcquireOutcome::All
    }

    /// The first of those that do not even ask their store, which is away; all such take note of
    /// it.
    fn note_shut(&self, group: &[usize]) -> Option<&'p Limit> {
        let mut first = None;
        for at in group {
            let CoveredLimit { limit, key } = self.counted[*at];
            if self.store(*at).is_shut(&limit.name, key) {
                limit.kept.contact.note_shut(&limit.name);
                first = first.or(Some(limit));
            }
        }
        first
    }

    fn store(&self, at: usize) -> &'p Elsewhere {
        let own = self.counted[at].limit.elsewhere.as_ref();
        own.unwrap_or_else(|| unreachable!("only limits of stores are asked for theirs"))
    }
}

/// What must remain for a call of this cost.
fn least(cost: Cost) -> u32 {
    match cost {
        Cost::Take(taken) => taken.get(),
        Cost::Peek | Cost::Refund(_) => 0,
    }
}

fn refund(cost: Cost) -> Cost {
    match cost {
        Cost::Take(taken) => Cost::Refund(taken),
        Cost::Peek | Cost::Refund(_) => Cost::Peek,
    }
}

/// A call that would have to be held for longer than its limit allows is rejected.
fn within_patience(verdict: Verdict, patience: Duration) -> Verdict {
    let Outcome::Admit { delay } = verdict.outcome else {
        return verdict;
    };
    let Some(over) = Duration::from(delay).checked_sub(patience) else {
        return verdict;
    };
    if over.is_zero() {
        return verdict;
    }
    let over = DurationUs(u64::try_from(over.as_micros()).unwrap_or(u64::MAX));
    let outcome = Outcome::Reject {
        retry_after: Some(over),
    };
    Verdict { outcome, ..verdict }
}
