//! Entry point of counts by leases: [`LeasedCounts`].

use std::fmt;
use std::sync::Arc;

use crate::ClientKey;
use crate::lease_store::{LeaseRecords, Partition};
use crate::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, UnfitError};
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::{Needs, Policy};
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use crate::leases::clock::{BootClock, Clock};
use crate::leases::deciding::{ClientRequest, Progress, StoreAccess};
use crate::leases::error::LeaseError;
use crate::leases::inner::Inner;
use crate::leases::random::Draws;
use crate::leases::settings::Settings;
use crate::leases::stats::LeaseStats;
use crate::leases::watch;

/// Rounds in which a request waits for the store. In each one a reply came, and other requests used
/// it up first.
const ROUNDS_MAX: u32 = 16;

/// Counts by leases from a store that nodes share.
///
/// Dropping it ends its background tasks. Its leases are lost then, and count as spent until their
/// windows have passed.
///
/// # Refunds
///
/// A refund is for the newest requests of its client. It restores the lease balance that they took
/// if the lease has not ended. Otherwise it does nothing, as leases are never returned to the
/// store.
pub struct LeasedCounts {
    inner: Arc<Inner>,
}

/// Error for a system without random numbers, which tell processes apart.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw random numbers")]
pub struct NoRandomnessError(#[source] getrandom::Error);

impl LeasedCounts {
    /// Counts by leases from this store. Sends nothing yet. Requests run on the runtime in which
    /// this is called.
    ///
    /// # Errors
    ///
    /// [`NoRandomnessError`].
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub fn new(
        store: Arc<dyn LeaseRecords>,
        settings: Settings,
    ) -> Result<Self, NoRandomnessError> {
        Self::with_clock(store, settings, Arc::new(BootClock))
    }

    /// Counts like [`new`](Self::new), with another clock than the machine's.
    ///
    /// # Errors
    ///
    /// [`NoRandomnessError`].
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub fn with_clock(
        store: Arc<dyn LeaseRecords>,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, NoRandomnessError> {
        let draws = Draws::new().map_err(NoRandomnessError)?;
        let inner = Inner::new(store, clock, settings, draws, Handle::current());
        let inner = Arc::new(inner);
        inner.runtime.spawn(watch::run(Arc::downgrade(&inner)));
        Ok(Self { inner })
    }

    /// Returns statistics since the start. It visits every client; request it now and then.
    #[must_use]
    pub fn stats(&self) -> LeaseStats {
        self.inner.stats()
    }

    /// Begins a new epoch when an operator confirms that nothing has been spent. The store forgets
    /// what it knows of clients, and a new store grants leases at once.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if the store cannot be written.
    pub async fn assume_empty(&self) -> Result<(), CountsError> {
        let partitions = (0..self.inner.store.partitions()).map(Partition);
        let each = partitions.map(|partition| self.inner.assume_empty(partition));
        let done: Result<Vec<()>, LeaseError> = join_all(each).await.into_iter().collect();
        done.map(drop).map_err(|error| self.counts_error(error))
    }

    fn counts_error(&self, error: LeaseError) -> CountsError {
        error.into_counts_error(self.inner.store.store_name())
    }

    fn client_request<'c>(&self, acquires: &'c [SharedAcquire<'c>]) -> ClientRequest<'c> {
        let key = |acquire: &SharedAcquire<'_>| self.inner.key(acquire.limit, acquire.key);
        ClientRequest::new(acquires, acquires.iter().map(key).collect())
    }

    async fn decide(
        &self,
        mut request: ClientRequest<'_>,
        verdicts: &mut Vec<Verdict>,
    ) -> Result<(), LeaseError> {
        let deadline = Instant::now() + self.inner.settings.timeout;
        for round in 0..ROUNDS_MAX {
            let wakeups = match self
                .inner
                .decide(&mut request, verdicts, StoreAccess::Allowed)
            {
                Progress::Decided => return Ok(()),
                Progress::Failed(error) => return Err(error),
                Progress::Wait(wakeups) => wakeups,
            };
            if round == 0 {
                self.inner.counters.asked.add(1);
            }
            let replied = timeout_at(deadline, join_all(wakeups)).await;
            replied.map_err(|_| LeaseError::DeadlinePassed {
                ms: self.inner.settings.timeout.as_millis(),
            })?;
        }
        Err(LeaseError::Contended { times: ROUNDS_MAX })
    }

    fn count(&self, outcome: Result<(), LeaseError>) -> Result<(), CountsError> {
        outcome.map_err(|error| {
            self.inner.counters.undecided.add(1);
            self.counts_error(error)
        })
    }
}

impl SharedCounts for LeasedCounts {
    fn kind(&self) -> &'static str {
        "leases"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn assume_empty(&self) -> Option<BoxFuture<'_, Result<(), CountsError>>> {
        Some(Box::pin(Self::assume_empty(self)))
    }

    fn expect_requests(&self) {
        self.inner.expect_calls();
    }

    /// Releases the store. What is already leased can be spent until the leases end.
    fn release(&self) -> BoxFuture<'_, ()> {
        self.inner.store.release()
    }

    fn is_ready(&self) -> bool {
        !self.inner.is_joining()
    }

    fn finish(&self, _has_successor: bool) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.leave())
    }

    fn is_unavailable(&self, _limit: &str, key: ClientKey) -> bool {
        self.inner.is_lost(self.inner.partition(key))
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let stats = self.stats();
        vec![
            ("decided_locally", stats.decided_here),
            ("waited", stats.waited),
            ("undecided", stats.undecided),
            ("request", stats.requests),
            ("round_trip", stats.round_trips),
            ("step", stats.steps),
            ("disagreement", stats.disagreements),
            ("failure", stats.failures),
            ("conflict", stats.conflicts),
            ("grant", stats.grants),
            ("request_leased", stats.granted),
            ("request_spent", stats.spent),
            ("unreadable_record", stats.unreadable),
            ("epoch_begun", stats.epochs_begun),
            ("request_restored", stats.restored),
            ("overflow", stats.overflows),
        ]
    }

    /// Rejects leaky buckets, and bursts that the requests during one lease would use up.
    fn check(&self, limit: &str, policy: &Policy) -> Result<(), UnfitError> {
        let leased_limit = LeasedLimit::with_part(*policy, self.inner.settings.lease_part);
        let fit = leased_limit.map(drop);
        fit.map_err(|source| UnfitError::NotLeasable {
            limit: limit.to_owned(),
            algorithm: policy.kind().name(),
            store: self.kind(),
            source,
        })
    }

    fn acquire<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let mut verdicts = Vec::with_capacity(acquires.len());
            let decided = self
                .decide(self.client_request(acquires), &mut verdicts)
                .await;
            self.count(decided).map(|()| verdicts)
        })
    }

    fn refund<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
        age: DurationUs,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let mut request = self.client_request(acquires);
            request.age = Some(age);
            let mut verdicts = Vec::with_capacity(acquires.len());
            let decided = self.decide(request, &mut verdicts).await;
            self.count(decided).map(|()| verdicts)
        })
    }

    fn try_acquire_now(
        &self,
        acquires: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        let mut request = self.client_request(acquires);
        match self
            .inner
            .decide(&mut request, verdicts, StoreAccess::Denied)
        {
            Progress::Decided => Some(Ok(())),
            // A caller that needs certainty calls `acquire` next, which counts the failure.
            Progress::Failed(error) => Some(Err(self.counts_error(error))),
            Progress::Wait(_) => None,
        }
    }
}

impl fmt::Debug for LeasedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeasedCounts({})", self.inner.store.store_name())
    }
}
