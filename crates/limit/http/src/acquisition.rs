//! Acquisition of several limits as one, local or shared: all of them, or none.
//!
//! Local limits are acquired under their locks, at once. If some limits are in shared stores, the
//! local ones are only peeked at first, because most requests over a limit then need no round trip.
//! Then each store acquires its limits, and the local ones come last. If one rejects, the earlier
//! ones are refunded, so others may see a rejected request counted for a moment.
//!
//! If the client disconnects in that moment, the cost stays acquired. Whether a store has acquired
//! it is not known before it replies, and a refund of nothing would allow one request too many.

use std::collections::VecDeque;
use std::time::Duration;

use anteroom_config::{OnLimit, OnLimitStoreFailure};
use anteroom_limit::cost::Cost;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit_store::local::{LocalAcquire, acquire_all};
use anteroom_limit_store::shared::{CountsError, SharedAcquire};
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::counted::CoveredLimit;
use crate::limit::Limit;
use crate::limiter::Limiter;
use crate::stores::SharedStore;

/// Combined outcome of all limits.
#[derive(Clone, Copy)]
pub(crate) enum AcquireOutcome<'p> {
    /// All limits allow the request, and were acquired.
    All,
    /// One limit rejects; none was acquired.
    Over,
    /// The store of one limit is unavailable, and the limit rejects everything then; none was
    /// acquired.
    Unavailable(&'p Limit),
}

impl AcquireOutcome<'_> {
    const fn of(is_admitted: bool) -> Self {
        if is_admitted { Self::All } else { Self::Over }
    }
}

/// Limits that cover a request, and their verdicts.
#[derive(Default)]
pub(crate) struct Acquisition<'p> {
    pub(crate) counted: SmallVec<[CoveredLimit<'p>; 2]>,
    /// Limits whose store is unavailable and that allow everything then.
    pub(crate) uncounted: Vec<&'p Limit>,
    /// Verdicts by limit; `None` before the limit was tried.
    verdicts: SmallVec<[Option<Verdict>; 2]>,
}

impl<'p> Acquisition<'p> {
    /// Acquires all limits or none, for a request that has waited for `delayed`.
    pub(crate) async fn acquire(
        &mut self,
        delayed: Duration,
        limiter: &Limiter,
    ) -> AcquireOutcome<'p> {
        match self.acquire_now(delayed, limiter) {
            Some(outcome) => outcome,
            None => self.acquire_everywhere(delayed, limiter).await,
        }
    }

    /// Acquires like [`acquire`](Self::acquire), but at once; `None` if a store must be reached.
    pub(crate) fn acquire_now(
        &mut self,
        delayed: Duration,
        limiter: &Limiter,
    ) -> Option<AcquireOutcome<'p>> {
        self.uncounted.clear();
        self.verdicts.clear();
        let is_local = |counted: &CoveredLimit<'_>| counted.limit.shared_store.is_none();
        if let [counted] = *self.counted
            && is_local(&counted)
        {
            let acquire = counted.limit.acquire(counted.key, delayed);
            let verdict = acquire.counts.acquire(&acquire, limiter.now());
            self.verdicts.push(Some(verdict));
            return Some(AcquireOutcome::of(verdict.is_allowed()));
        }
        self.verdicts.resize(self.counted.len(), None);
        if let [counted] = *self.counted {
            return self.acquire_leased(counted);
        }
        if !self.counted.iter().all(is_local) {
            return None;
        }
        let all: SmallVec<[usize; 8]> = (0..self.counted.len()).collect();
        Some(self.acquire_local(&all, delayed, limiter.now()))
    }

    /// Whether the limits reject the request, if all of them are local. Their verdicts are then set
    /// as if no others existed. Otherwise nothing is acquired.
    pub(crate) fn are_over_locally(&mut self, limiter: &Limiter) -> bool {
        let all: Vec<usize> = (0..self.counted.len()).collect();
        let now = limiter.now();
        if !self.is_over_locally(&all, Duration::ZERO, now) {
            return false;
        }
        self.verdicts.clear();
        self.verdicts.resize(self.counted.len(), None);
        if let AcquireOutcome::Over = self.acquire_local(&all, Duration::ZERO, now) {
            return true;
        }
        // A refill came in between.
        self.refund_local(&all, now);
        false
    }

    /// Acquires one shared limit, if its store can decide at once.
    fn acquire_leased(&mut self, counted: CoveredLimit<'p>) -> Option<AcquireOutcome<'p>> {
        let store = counted.limit.shared_store.as_ref()?;
        if store.is_closed(&counted.limit.name, counted.key) {
            return None;
        }
        let policy = counted.policy();
        let acquire = counted.shared(&policy, counted.limit.cost);
        let mut verdicts = Vec::with_capacity(1);
        let decided = store.counts.try_acquire_now(&[acquire], &mut verdicts)?;
        // After a failure nothing was acquired, and the slow path reports it.
        decided.ok()?;
        let verdict = *verdicts.first()?;
        counted.note_reply(store);
        self.verdicts[0] = Some(verdict);
        Some(AcquireOutcome::of(verdict.is_allowed()))
    }

    /// Returns the verdicts of the limits that were tried.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = (CoveredLimit<'p>, Verdict)> {
        let all = self.counted.iter().copied().zip(&self.verdicts);
        all.filter_map(|(counted, verdict)| Some((counted, (*verdict)?)))
    }

    /// Returns the verdicts that reject the request.
    pub(crate) fn rejecting(&self) -> impl Iterator<Item = (CoveredLimit<'p>, Verdict)> {
        self.verdicts().filter(|(_, verdict)| !verdict.is_allowed())
    }

    async fn acquire_everywhere(
        &mut self,
        delayed: Duration,
        limiter: &Limiter,
    ) -> AcquireOutcome<'p> {
        let mut local: Vec<usize> = Vec::new();
        let mut shared: Vec<usize> = Vec::new();
        for (at, counted) in self.counted.iter().enumerate() {
            let is_local = counted.limit.shared_store.is_none();
            if is_local { &mut local } else { &mut shared }.push(at);
        }
        let mut early: Vec<usize> = Vec::new();
        if self.is_over_locally(&local, delayed, limiter.now()) {
            if let AcquireOutcome::Over = self.acquire_local(&local, delayed, limiter.now()) {
                return AcquireOutcome::Over;
            }
            // A refill came in between.
            early = std::mem::take(&mut local);
        }
        let began = Instant::now();
        let mut acquired: Vec<Vec<usize>> = Vec::new();
        let mut outcome = AcquireOutcome::All;
        let mut groups = self.by_store(shared);
        while let Some(group) = groups.pop_front()
            && matches!(outcome, AcquireOutcome::All)
        {
            if let Some(limit) = self.note_closed(&group) {
                outcome = AcquireOutcome::Unavailable(limit);
                continue;
            }
            match self
                .acquire_shared(self.store(group[0]), &group, delayed)
                .await
            {
                Ok(true) => acquired.push(group),
                Ok(false) => outcome = AcquireOutcome::Over,
                // The others may have leases left, or a server that responds: try each alone.
                Err(CountsError::Unreachable { .. } | CountsError::Closed { .. })
                    if group.len() > 1 =>
                {
                    for at in group.into_iter().rev() {
                        groups.push_front(vec![at]);
                    }
                }
                Err(error) => {
                    self.note_failure(&group, &error);
                    outcome = match error {
                        // The store responds, so nothing justifies an uncounted request.
                        CountsError::Busy { .. } => {
                            AcquireOutcome::Unavailable(self.counted[group[0]].limit)
                        }
                        _ => self.without_store(&group, &mut local),
                    };
                }
            }
        }
        if matches!(outcome, AcquireOutcome::All) {
            outcome = self.acquire_local(&local, delayed, limiter.now());
        }
        if !matches!(outcome, AcquireOutcome::All) {
            self.refund_local(&early, limiter.now());
            for group in acquired.iter().rev() {
                self.refund_shared(self.store(group[0]), group, began).await;
            }
        }
        outcome
    }

    /// Groups limits by store.
    fn by_store(&self, mut shared: Vec<usize>) -> VecDeque<Vec<usize>> {
        let mut groups = VecDeque::new();
        while let Some(first) = shared.first() {
            let store = self.store(*first);
            let is_there = |at: &mut usize| self.store(*at).is_same_store(store);
            groups.push_back(shared.extract_if(.., is_there).collect());
        }
        groups
    }

    /// Whether local limits reject the request, as far as a peek can tell.
    fn is_over_locally(&self, local: &[usize], delayed: Duration, now: TimestampUs) -> bool {
        local.iter().any(|at| {
            let CoveredLimit { limit, key } = self.counted[*at];
            let cost = Cost::Peek;
            let acquire = LocalAcquire {
                cost,
                ..limit.acquire(key, delayed)
            };
            let verdict = limit.kept.counts.acquire(&acquire, now);
            // The peek was for a cost of one.
            let is_short =
                limit.on_limit == OnLimit::Reject && verdict.remaining < least(limit.cost);
            is_short || !verdict.is_allowed()
        })
    }

    fn acquire_local(
        &mut self,
        local: &[usize],
        delayed: Duration,
        now: TimestampUs,
    ) -> AcquireOutcome<'p> {
        let acquires = local.iter().map(|at| {
            let CoveredLimit { limit, key } = self.counted[*at];
            limit.acquire(key, delayed)
        });
        let acquires: Vec<LocalAcquire<'_>> = acquires.collect();
        let mut verdicts = Vec::with_capacity(acquires.len());
        let is_admitted = acquire_all(&acquires, now, &mut verdicts);
        for (at, verdict) in local.iter().zip(verdicts) {
            self.verdicts[*at] = Some(verdict);
        }
        AcquireOutcome::of(is_admitted)
    }

    fn refund_local(&self, local: &[usize], now: TimestampUs) {
        for at in local {
            let CoveredLimit { limit, key } = self.counted[*at];
            let cost = refund(limit.cost);
            let acquire = LocalAcquire {
                cost,
                ..limit.acquire(key, Duration::ZERO)
            };
            limit.kept.counts.acquire(&acquire, now);
        }
    }

    /// Acquires the limits of one store and returns whether all of them allow.
    async fn acquire_shared(
        &mut self,
        store: &SharedStore,
        group: &[usize],
        delayed: Duration,
    ) -> Result<bool, CountsError> {
        let began = Instant::now();
        let policies: Vec<_> = group.iter().map(|at| self.counted[*at].policy()).collect();
        let both = group.iter().zip(&policies);
        let acquires: Vec<SharedAcquire<'_>> = both
            .map(|(at, policy)| {
                let counted = &self.counted[*at];
                counted.shared(policy, counted.limit.cost)
            })
            .collect();
        let verdicts = store.counts.acquire(&acquires).await?;
        let is_acquired = verdicts.iter().all(Verdict::is_allowed);
        let mut is_admitted = true;
        for (at, verdict) in group.iter().zip(verdicts) {
            let counted = self.counted[*at];
            counted.note_reply(store);
            let limit = counted.limit;
            let verdict = within_delay_max(verdict, limit.delay_max().saturating_sub(delayed));
            is_admitted &= verdict.is_allowed();
            self.verdicts[*at] = Some(verdict);
        }
        if is_acquired && !is_admitted {
            self.refund_shared(store, group, began).await;
        }
        Ok(is_admitted)
    }

    /// Refunds the limits of one store. If that fails, their cost stays acquired: that allows fewer
    /// requests, never more.
    async fn refund_shared(&self, store: &SharedStore, group: &[usize], began: Instant) {
        let policies: Vec<_> = group.iter().map(|at| self.counted[*at].policy()).collect();
        let both = group.iter().zip(&policies);
        let acquires: Vec<SharedAcquire<'_>> = both
            .map(|(at, policy)| {
                let counted = &self.counted[*at];
                counted.shared(policy, refund(counted.limit.cost))
            })
            .collect();
        let age = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let refunded = store
            .counts
            .refund(&acquires, DurationUs(age.saturating_add(1)));
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

    /// Applies the failure settings of limits whose store is unavailable. Limits that continue
    /// locally go to `local`.
    fn without_store(&mut self, group: &[usize], local: &mut Vec<usize>) -> AcquireOutcome<'p> {
        for at in group {
            let limit = self.counted[*at].limit;
            let on_failure = limit.shared_store.as_ref().map(|own| own.on_failure);
            match on_failure {
                Some(OnLimitStoreFailure::Open) => self.uncounted.push(limit),
                Some(OnLimitStoreFailure::Local) => local.push(*at),
                Some(OnLimitStoreFailure::Bounded | OnLimitStoreFailure::Closed) | None => {
                    return AcquireOutcome::Unavailable(limit);
                }
            }
        }
        AcquireOutcome::All
    }

    /// Returns the first limit that is closed while its store is unavailable. All such limits
    /// record the failure.
    fn note_closed(&self, group: &[usize]) -> Option<&'p Limit> {
        let mut first = None;
        for at in group {
            let CoveredLimit { limit, key } = self.counted[*at];
            if self.store(*at).is_closed(&limit.name, key) {
                limit.kept.contact.note_closed(&limit.name);
                first = first.or(Some(limit));
            }
        }
        first
    }

    fn store(&self, at: usize) -> &'p SharedStore {
        let own = self.counted[at].limit.shared_store.as_ref();
        own.unwrap_or_else(|| unreachable!("only shared limits have a store"))
    }
}

/// Returns what must remain for a request of this cost.
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

/// Rejects a request whose delay is longer than its limit allows.
fn within_delay_max(verdict: Verdict, delay_max: Duration) -> Verdict {
    let Outcome::Allow { delay } = verdict.outcome else {
        return verdict;
    };
    let Some(over) = Duration::from(delay).checked_sub(delay_max) else {
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
