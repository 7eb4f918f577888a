//! Interface of a store of counts that several nodes share.
//!
//! One operation decides and acquires. How a store keeps its state is its own affair;
//! [`crate::conformance`] defines what it must do.
//!
//! Deliberately absent: what to do while a store is unavailable. The interface of a store that
//! grants leases is [`crate::lease_store`].

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_limit::cost::Cost;
use anteroom_limit::leases::widened::NotLeasableError;
use anteroom_limit::policy::{Needs, Policy};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;

use crate::key::ClientKey;

/// Future that a store returns. It is boxed: beside a network round trip one allocation is nothing,
/// and callers need not know the store's type.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Counts that several nodes share.
///
/// - However many nodes acquire for a client at once, a limit never admits more than its algorithm
///   does. Stores whose nodes only exchange their counts (gossip, Kafka) promise that of each node
///   alone, and report how far off they are.
/// - All nodes use the store's clock. A store without one reports the clock skew that it tolerates.
/// - An acquisition for one client of one limit affects no other.
pub trait SharedCounts: fmt::Debug + Send + Sync + 'static {
    /// Returns the kind of the store, as the config names it.
    fn kind(&self) -> &'static str;

    /// Returns what the store can do. Limits that need more cannot be kept in it.
    fn offers(&self) -> Needs;

    /// Checks whether a limit can be kept here. Call it for each limit at the start.
    ///
    /// # Errors
    ///
    /// [`UnfitError`] names the limit and what is missing.
    fn check(&self, limit: &str, policy: &Policy) -> Result<(), UnfitError> {
        check_needs(self.kind(), self.offers(), limit, policy)
    }

    /// Announces that a limit uses this store, so that slow preparations can begin before the first
    /// request.
    fn expect_requests(&self) {}

    /// Whether the store is known to be unavailable now for a client of a limit. It still decides
    /// what it can decide from leases.
    fn is_unavailable(&self, limit: &str, key: ClientKey) -> bool {
        let _ = (limit, key);
        false
    }

    /// Whether requests may be sent to this node. A store may need some seconds after the start.
    fn is_ready(&self) -> bool {
        true
    }

    /// Returns its event counters for metrics, each with a fixed name.
    fn events(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Forgets what clients have spent, when an operator confirms that they have spent nothing.
    /// Stores that grant leases need this after they have lost their data. Returns `None`, and does
    /// nothing, for a store that grants none.
    fn assume_empty(&self) -> Option<BoxFuture<'_, Result<(), CountsError>>> {
        None
    }

    /// Releases what a successor process on this machine waits for, such as an address or a file,
    /// and sends other nodes what they do not know yet. Later requests are counted as far as that
    /// works without it.
    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Ends the counting: sends the last counts to other nodes, and to a successor process on this
    /// machine if there is one. Call it after [`Self::release`].
    fn finish(&self, has_successor: bool) -> BoxFuture<'_, ()> {
        let _ = has_successor;
        Box::pin(async {})
    }

    /// Acquires from several limits, or from none: from all if all admit. The verdicts come in the
    /// order of the limits. When one rejects, the verdicts of the others report their state without
    /// this request.
    ///
    /// A store that cannot acquire several keys atomically acquires one after the other, and
    /// refunds those when a later one rejects. Until then other requests may be rejected because of
    /// them.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if no verdict is known. A caller that stops waiting, or gets
    /// [`CountsError::Late`], does not know whether the costs were taken.
    fn acquire<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>>;

    /// Refunds what was taken at most `age` ago; the costs are [`Cost::Refund`]. A store that
    /// grants leases needs the age to find out whether the lease is still its own.
    fn refund<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
        age: DurationUs,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        let _ = age;
        self.acquire(charges)
    }

    /// Does what [`Self::acquire`] does if that needs no waiting, and appends to `verdicts`.
    /// Otherwise returns `None` and takes nothing. It saves a future in stores that mostly decide
    /// from memory.
    fn try_acquire_now(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        let _ = (charges, verdicts);
        None
    }
}

/// Acquisition from one limit.
#[derive(Clone, Copy, Debug)]
pub struct SharedAcquire<'c> {
    /// Name of the limit. Limits of the same name are the same limit.
    pub limit: &'c str,
    /// Policy of this client. Nodes may differ in it for a while: each decides by its own, and what
    /// was spent stays spent.
    pub policy: &'c Policy,
    /// Client that sends the request.
    pub key: ClientKey,
    /// Cost of the request.
    pub cost: Cost,
}

/// Reason for which a limit cannot be kept in a store.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitError {
    /// The algorithm needs more than the store offers. Use another algorithm or another store.
    #[error(
        "the limit {limit:?} by {algorithm} needs {}; {store} offers {} only",
        words(*needs),
        words(*offers)
    )]
    NeedsMore {
        /// Name of the limit.
        limit: String,
        /// Algorithm of the limit.
        algorithm: &'static str,
        /// Abilities that the algorithm needs.
        needs: Needs,
        /// Kind of the store.
        store: &'static str,
        /// Abilities that the store offers.
        offers: Needs,
    },
    /// The limit allows requests too far ahead of its rate. Use a lower burst, a shorter queue, or
    /// a higher rate.
    #[error(
        "the limit {limit:?} by {algorithm} allows requests {years} years ahead of its rate; \
         {store} counts exactly up to {years_max} years"
    )]
    TooFarAhead {
        /// Name of the limit.
        limit: String,
        /// Algorithm of the limit.
        algorithm: &'static str,
        /// Time for a full burst or queue at the limit's rate, rounded up.
        years: u64,
        /// Kind of the store.
        store: &'static str,
        /// Largest number of years that the store can count ahead.
        years_max: u64,
    },
    /// The log would be too long. Use a lower limit, another algorithm, or another store.
    #[error(
        "the limit {limit:?} by sliding-log keeps {requests} requests; {store} keeps logs of up to \
         {calls_max}"
    )]
    LogTooLong {
        /// Name of the limit.
        limit: String,
        /// Requests that the limit admits in a window.
        requests: u32,
        /// Kind of the store.
        store: &'static str,
        /// Largest number of requests that the store can remember.
        calls_max: u32,
    },
    /// The store cannot lease the limit. Use another algorithm, a larger burst, or another store.
    #[error("the limit {limit:?} by {algorithm} cannot be kept by {store}")]
    NotLeasable {
        /// Name of the limit.
        limit: String,
        /// Algorithm of the limit.
        algorithm: &'static str,
        /// Kind of the store.
        store: &'static str,
        /// Underlying error.
        source: NotLeasableError,
    },
}

/// Error of a request to a store of counts: no verdict is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountsError {
    /// The store is unavailable. Nothing was taken.
    #[error("{store_name} is unavailable")]
    Unreachable {
        /// Name of the store, without secrets.
        store_name: String,
        /// Underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store replies, and grants nothing for now. Nothing was taken.
    #[error("{store_name} grants nothing now")]
    Closed {
        /// Name of the store, without secrets.
        store_name: String,
        /// Underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The reply did not come. The cost may have been taken or not.
    #[error("no reply from {store_name}")]
    Late {
        /// Name of the store, without secrets.
        store_name: String,
        /// Underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store is overloaded. Nothing was taken.
    #[error("{store_name} is overloaded")]
    Busy {
        /// Name of the store, without secrets.
        store_name: String,
        /// Underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store rejects the request until an operator has changed something.
    #[error("{store_name} {refusal}; {remedy}")]
    Rejected {
        /// Name of the store, without secrets.
        store_name: String,
        /// Reason, in our words.
        refusal: &'static str,
        /// Next step for the operator.
        remedy: &'static str,
        /// The store's own error.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl CountsError {
    /// Whether the error may pass without an operator.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Closed { .. }
            | Self::Late { .. }
            | Self::Busy { .. } => true,
            Self::Rejected { .. } => false,
        }
    }
}

/// Formats an error with its causes on one line. Causes that are the same are named once.
#[must_use]
pub fn chain(error: &CountsError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = cause.source();
    }
    text
}

/// Checks whether a store that offers `offers` can keep a limit.
///
/// # Errors
///
/// [`UnfitError::NeedsMore`] if the algorithm needs more.
pub fn check_needs(
    store: &'static str,
    offers: Needs,
    limit: &str,
    policy: &Policy,
) -> Result<(), UnfitError> {
    let needs = policy.needs();
    if needs <= offers {
        return Ok(());
    }
    Err(UnfitError::NeedsMore {
        limit: limit.to_owned(),
        algorithm: policy.kind().name(),
        needs,
        store,
        offers,
    })
}

fn words(needs: Needs) -> &'static str {
    match needs {
        Needs::AtomicAdd => "atomic adds",
        Needs::Transaction => "transactions",
    }
}

/// Clock of a store in a test, which sets it. Clones share it.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct TestTime(Arc<AtomicU64>);

impl TestTime {
    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> TimestampUs {
        TimestampUs(self.0.load(Ordering::SeqCst))
    }

    /// Sets the time for all clones.
    pub fn set(&self, now: TimestampUs) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use anteroom_limit::fixed_window::FixedWindow;
    use anteroom_limit::rate::Rate;
    use anteroom_limit::sliding_log::SlidingLog;

    use super::*;

    fn check(offers: Needs, policy: &Policy) -> Result<(), String> {
        check_needs("memcached", offers, "api", policy).map_err(|error| error.to_string())
    }

    #[test]
    fn a_limit_that_its_store_cannot_keep_is_rejected_with_both_named() {
        let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
        let log = Policy::SlidingLog(SlidingLog::new(rate).unwrap());
        let fixed = Policy::FixedWindow(FixedWindow::new(rate));
        for policy in [&log, &fixed] {
            assert_eq!(check(Needs::Transaction, policy), Ok(()));
        }
        assert_eq!(check(Needs::AtomicAdd, &fixed), Ok(()));
        let rejected = "the limit \"api\" by sliding-log needs transactions; memcached offers \
                       atomic adds only";
        assert_eq!(check(Needs::AtomicAdd, &log), Err(rejected.to_owned()));
    }

    #[test]
    fn a_cause_that_repeats_its_effect_is_named_once() {
        let unreachable = |source| CountsError::Unreachable {
            store_name: "valkey".to_owned(),
            source,
        };
        let error = unreachable(Box::new(unreachable("it is down".into())));
        assert_eq!(chain(&error), "valkey is unavailable: it is down");
    }

    #[test]
    fn only_a_refusal_is_not_transient() {
        let (store_name, source) = (|| "valkey".to_owned(), || "no".into());
        let unreachable = CountsError::Unreachable {
            store_name: store_name(),
            source: source(),
        };
        let late = CountsError::Late {
            store_name: store_name(),
            source: source(),
        };
        let refused = CountsError::Rejected {
            store_name: store_name(),
            refusal: "is too old",
            remedy: "run another",
            source: source(),
        };
        let transient = [unreachable, late, refused].map(|error| error.is_transient());
        assert_eq!(transient, [true, true, false]);
    }
}
