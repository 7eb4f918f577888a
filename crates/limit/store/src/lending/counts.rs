//! Counts by leases: the door to it all.

use std::fmt;
use std::sync::Arc;

use crate::CallKey;
use crate::lent::{LeaseRecords, Shelf};
use crate::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, UnfitError};
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::policy::{Needs, Policy};
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use crate::lending::clock::{BootClock, Clock};
use crate::lending::draws::Draws;
use crate::lending::error::AskError;
use crate::lending::inner::Inner;
use crate::lending::pass::{Call, May, Pass};
use crate::lending::settings::Settings;
use crate::lending::stats::LeaseStats;
use crate::lending::watch;

/// How often a call asks again when others were quicker. Each time it had waited for an answer, and
/// what came was gone before its turn.
const TURNS_MAX: u32 = 16;

/// Counts by leases from a store that nodes share.
///
/// Dropping it ends what runs beside the calls. What was lent to it is lost then, and free again
/// when the charge is over.
///
/// # Refunds
///
/// A refund is for the newest calls of its client. It gives back what they took if that can still
/// be spent here; otherwise it does nothing, for what is lent is never given back to the store.
pub struct LeasedCounts {
    inner: Arc<Inner>,
}

/// The system has no random numbers, without which no two processes can be told apart.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw random numbers")]
pub struct NoRandomnessError(#[source] getrandom::Error);

impl LeasedCounts {
    /// Counts by leases from this store. Asks nothing yet. Requests run on the runtime in which
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

    /// The same with another clock than that of the machine.
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

    /// What it has done so far. Looks at every client; to be asked now and then.
    #[must_use]
    pub fn stats(&self) -> LeaseStats {
        self.inner.stats()
    }

    /// Begins a new epoch on an operator's word that nobody has spent anything: all that the store
    /// knows of clients is forgotten, and a store that is new lends at once.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if the store cannot be written.
    pub async fn assume_empty(&self) -> Result<(), CountsError> {
        let shelves = (0..self.inner.store.shelves()).map(Shelf);
        let each = shelves.map(|shelf| self.inner.assume_empty(shelf));
        let done: Result<Vec<()>, AskError> = join_all(each).await.into_iter().collect();
        done.map(drop).map_err(|error| self.told(error))
    }

    fn told(&self, error: AskError) -> CountsError {
        error.into_counts_error(self.inner.store.place())
    }

    fn call<'c>(&self, charges: &'c [SharedAcquire<'c>]) -> Call<'c> {
        let key = |charge: &SharedAcquire<'_>| self.inner.key(charge.limit, charge.key);
        Call::new(charges, charges.iter().map(key).collect())
    }

    async fn decide(
        &self,
        mut call: Call<'_>,
        verdicts: &mut Vec<Verdict>,
    ) -> Result<(), AskError> {
        let deadline = Instant::now() + self.inner.settings.patience;
        for turn in 0..TURNS_MAX {
            let bells = match self.inner.pass(&mut call, verdicts, May::Ask) {
                Pass::Told => return Ok(()),
                Pass::Unknown(error) => return Err(error),
                Pass::Wait(bells) => bells,
            };
            if turn == 0 {
                self.inner.counters.asked.add(1);
            }
            let answered = timeout_at(deadline, join_all(bells)).await;
            answered.map_err(|_| AskError::Late {
                ms: self.inner.settings.patience.as_millis(),
            })?;
        }
        Err(AskError::Contended { times: TURNS_MAX })
    }

    fn count(&self, outcome: Result<(), AskError>) -> Result<(), CountsError> {
        outcome.map_err(|error| {
            self.inner.counters.undecided.add(1);
            self.told(error)
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

    fn expect_calls(&self) {
        self.inner.expect_calls();
    }

    /// Calls that were lent are spent until they end.
    fn release(&self) -> BoxFuture<'_, ()> {
        self.inner.store.release()
    }

    fn is_away(&self, _limit: &str, key: CallKey) -> bool {
        self.inner.is_lost(self.inner.shelf(key))
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let stats = self.stats();
        vec![
            ("decided_locally", stats.decided_here),
            ("waited", stats.asked),
            ("undecided", stats.undecided),
            ("request", stats.requests),
            ("round_trip", stats.round_trips),
            ("step", stats.steps),
            ("disagreement", stats.disagreements),
            ("failure", stats.failures),
            ("conflict", stats.conflicts),
            ("grant", stats.grants),
            ("request_leased", stats.lent),
            ("request_spent", stats.spent),
            ("unreadable_record", stats.unreadable),
            ("epoch_begun", stats.epochs_begun),
            ("overflow", stats.crowded),
        ]
    }

    /// Beside what is needed: no leaky bucket, and no burst that is used up by what comes during a
    /// lease.
    fn check(&self, limit: &str, policy: &Policy) -> Result<(), UnfitError> {
        let lending = LeasedLimit::with_part(*policy, self.inner.settings.lease_part);
        let fit = lending.map(drop);
        fit.map_err(|source| UnfitError::CannotBeLent {
            limit: limit.to_owned(),
            algorithm: policy.kind().name(),
            store: self.kind(),
            source,
        })
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let mut verdicts = Vec::with_capacity(charges.len());
            let decided = self.decide(self.call(charges), &mut verdicts).await;
            self.count(decided).map(|()| verdicts)
        })
    }

    fn refund<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
        age: DurationUs,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let mut call = self.call(charges);
            call.age = Some(age);
            let mut verdicts = Vec::with_capacity(charges.len());
            let decided = self.decide(call, &mut verdicts).await;
            self.count(decided).map(|()| verdicts)
        })
    }

    fn charge_now(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        let mut call = self.call(charges);
        match self.inner.pass(&mut call, verdicts, May::NotAsk) {
            Pass::Told => Some(Ok(())),
            // Whoever wants to know it for certain asks once more, and is counted then.
            Pass::Unknown(error) => Some(Err(self.told(error))),
            Pass::Wait(_) => None,
        }
    }
}

impl fmt::Debug for LeasedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeasedCounts({})", self.inner.store.place())
    }
}
