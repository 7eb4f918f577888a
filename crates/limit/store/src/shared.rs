//! What does a store of counts offer that several nodes share?
//!
//! One call decides and charges. Where and how a store keeps its states is its own affair; what it
//! must do is written down as [`crate::conformance`].
//!
//! Deliberately absent: what to do while a store is away. What a store offers from which calls are
//! lent is [`crate::lent`].

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_limit::cost::Cost;
use anteroom_limit::lending::widened::NotLeasableError;
use anteroom_limit::policy::{Needs, Policy};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;

use crate::key::CallKey;

/// A future that a store returns. Boxed: it waits for a network, beside which one allocation is
/// nothing, and callers need not know which store it is.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Counts that several nodes share.
///
/// # Invariants
///
/// - However many nodes charge a client at once, one limit never admits more than its algorithm
///   does. Stores whose nodes only tell each other (gossip, Kafka) promise that of each node alone,
///   and say how far off they are.
/// - The time is the store's, the same for all nodes; a store that has none says how far their
///   clocks may be apart.
/// - What is charged to one client of one limit touches no other.
pub trait SharedCounts: fmt::Debug + Send + Sync + 'static {
    /// What kind of store it is, as whoever configures it calls it.
    fn kind(&self) -> &'static str;

    /// What it can do. What needs more cannot be kept in it.
    fn offers(&self) -> Needs;

    /// Says whether a limit can be kept here; to be asked of each at the start.
    ///
    /// # Errors
    ///
    /// [`UnfitError`] names the limit and what is missing.
    fn check(&self, limit: &str, policy: &Policy) -> Result<(), UnfitError> {
        check_needs(self.kind(), self.offers(), limit, policy)
    }

    /// A limit counts here from now on: what takes its time may begin before the first call comes.
    fn expect_calls(&self) {}

    /// Whether it is known to be away at present for a client of a limit. What it can decide all
    /// the same, from what it has lent, it does.
    fn is_away(&self, limit: &str, key: CallKey) -> bool {
        let _ = (limit, key);
        false
    }

    /// What it has counted of itself since it began, each by a fixed word; for metrics.
    fn events(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Forgets what clients have spent, on an operator's word that they have spent nothing; for
    /// stores that lend, which otherwise cannot know after they have lost their memory. `None` if
    /// this is none: then nothing is done.
    fn assume_empty(&self) -> Option<BoxFuture<'_, Result<(), CountsError>>> {
        None
    }

    /// Lets go of what a successor on this machine waits for, such as an address or a file, and
    /// tells other nodes what they do not know yet. Calls that still come are counted as far as
    /// that can be done without it.
    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Nothing more is counted here: tells other nodes, and a successor on this machine if there is
    /// one, the last of it. To be called after [`Self::release`].
    fn finish(&self, has_successor: bool) -> BoxFuture<'_, ()> {
        let _ = has_successor;
        Box::pin(async {})
    }

    /// Charges several limits, or none of them: all if all admit. The verdicts come in the order of
    /// the charges. Where one rejects, those that would have admitted say how they stand without
    /// this call.
    ///
    /// A store that cannot charge several keys in one piece charges one after the other, and
    /// refunds those when a later one rejects. Until then they count, so others may be rejected
    /// meanwhile, for a moment.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if it is not known what would become of the call. Whoever stops waiting, or
    /// is told [`CountsError::Late`], does not know whether it was charged.
    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>>;

    /// Gives back what was charged a moment ago, not longer than `age`: the costs are refunds. A
    /// store that lends may not tell without that whether what is given back is still its own.
    fn refund<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
        age: DurationUs,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        let _ = age;
        self.charge(charges)
    }

    /// The same as [`Self::charge`] if it can be said without waiting: the verdicts are added to
    /// `verdicts`. `None` if it cannot; then nothing was charged, and it is as if nobody had asked.
    /// For stores that decide by themselves most of the time: it costs no future.
    fn charge_now(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        let _ = (charges, verdicts);
        None
    }
}

/// One call against one limit.
#[derive(Clone, Copy, Debug)]
pub struct SharedAcquire<'c> {
    /// The limit's name. Two limits of one name are one.
    pub limit: &'c str,
    /// The settings that hold for this client. Nodes may differ in them for a while: each decides
    /// by its own, and what was spent stays spent.
    pub policy: &'c Policy,
    /// Who calls.
    pub key: CallKey,
    /// How much it counts.
    pub cost: Cost,
}

/// Why a limit cannot be kept in a store.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitError {
    /// Another algorithm, or another store.
    #[error(
        "the limit {limit:?} by {algorithm} needs {}; {store} offers {} only",
        words(*needs),
        words(*offers)
    )]
    NeedsMore {
        /// The limit's name.
        limit: String,
        /// Its algorithm.
        algorithm: &'static str,
        /// What that needs.
        needs: Needs,
        /// The store.
        store: &'static str,
        /// What it offers.
        offers: Needs,
    },
    /// A lower burst, a shorter queue, or a higher rate.
    #[error(
        "the limit {limit:?} by {algorithm} lets calls come {years} years ahead of its rate; \
         {store} counts exactly up to {years_max} years"
    )]
    TooFarAhead {
        /// The limit's name.
        limit: String,
        /// Its algorithm.
        algorithm: &'static str,
        /// How long a full burst or queue takes, rounded up.
        years: u64,
        /// The store.
        store: &'static str,
        /// How far ahead it can count.
        years_max: u64,
    },
    /// A lower limit, another algorithm, or another store.
    #[error(
        "the limit {limit:?} by sliding-log remembers {calls} calls; {store} keeps logs of up to \
         {calls_max}"
    )]
    LogTooLong {
        /// The limit's name.
        limit: String,
        /// How many calls it admits in a window.
        calls: u32,
        /// The store.
        store: &'static str,
        /// How many it can remember.
        calls_max: u32,
    },
    /// Another algorithm, a larger burst, or another store.
    #[error("the limit {limit:?} by {algorithm} cannot be kept by {store}")]
    CannotBeLent {
        /// The limit's name.
        limit: String,
        /// Its algorithm.
        algorithm: &'static str,
        /// The store.
        store: &'static str,
        /// What is in the way.
        source: NotLeasableError,
    },
}

/// Why nobody knows what would become of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountsError {
    /// There is no way to it at present. Nothing was charged.
    #[error("cannot use {place} at present")]
    Unreachable {
        /// Which store, without secrets.
        place: String,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer did not come. The call may have been charged or not.
    #[error("no answer from {place}")]
    Late {
        /// Which store, without secrets.
        place: String,
        /// What was there instead.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It is there, and has no time for this call: too much is asked of it at once. Nothing was
    /// charged.
    #[error("{place} has no time for this call")]
    Busy {
        /// Which store, without secrets.
        place: String,
        /// What is too much.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It answers, and will not do what is asked before somebody has changed something.
    #[error("{place} {refusal}; {remedy}")]
    Refused {
        /// Which store, without secrets.
        place: String,
        /// What it said, in our words.
        refusal: &'static str,
        /// What to do.
        remedy: &'static str,
        /// What it said, in its words.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl CountsError {
    /// Whether it may go away by itself.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Late { .. } | Self::Busy { .. } => true,
            Self::Refused { .. } => false,
        }
    }
}

/// An error with its causes, on one line.
#[must_use]
pub fn chain(error: &CountsError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Says whether a store that offers so much can keep a limit.
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

/// The time of a store in a test, which brings it along. Clones share it.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct TestTime(Arc<AtomicU64>);

impl TestTime {
    /// What time it is.
    #[must_use]
    pub fn now(&self) -> TimestampUs {
        TimestampUs(self.0.load(Ordering::SeqCst))
    }

    /// From now on it is this time, for all who share it.
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
    fn a_limit_beyond_its_stores_means_is_rejected_naming_both() {
        let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
        let log = Policy::SlidingLog(SlidingLog::new(rate).unwrap());
        let fixed = Policy::FixedWindow(FixedWindow::new(rate));
        for policy in [&log, &fixed] {
            assert_eq!(check(Needs::Transaction, policy), Ok(()));
        }
        assert_eq!(check(Needs::AtomicAdd, &fixed), Ok(()));
        let refused = "the limit \"api\" by sliding-log needs transactions; memcached offers \
                       atomic adds only";
        assert_eq!(check(Needs::AtomicAdd, &log), Err(refused.to_owned()));
    }

    #[test]
    fn what_somebody_must_mend_does_not_go_away_by_itself() {
        let (place, source) = (|| "valkey".to_owned(), || "no".into());
        let unreachable = CountsError::Unreachable {
            place: place(),
            source: source(),
        };
        let late = CountsError::Late {
            place: place(),
            source: source(),
        };
        let refused = CountsError::Refused {
            place: place(),
            refusal: "is too old",
            remedy: "run another",
            source: source(),
        };
        let transient = [unreachable, late, refused].map(|error| error.is_transient());
        assert_eq!(transient, [true, true, false]);
    }
}
