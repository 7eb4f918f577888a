//! Request counts at the server: exact across nodes, in one round trip.
//!
//! A script decides and acquires, by the server's clock and with exact arithmetic. It returns the
//! prior state, and the algorithm itself computes the verdict from that. So verdicts have one
//! source. If it differs from the script's decision, one of them is wrong: see
//! [`ValkeyCounts::disagreements`].

pub(crate) mod script;
mod value;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_config::ValkeyAddress;
use anteroom_limit::ahead::{YEARS_EXACT, years_ahead};
use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Needs, Policy};
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::{Outcome, Verdict};
use anteroom_limit_store::shared::{
    self, BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime, UnfitError,
};

use self::script::{AcquireMode, AcquireScript, ScriptVerdict};
use crate::access::SetupError;
use crate::keys::Keys;
use crate::route::Route;

/// Counts on Valkey or Redis.
///
/// There is one connection to each server, shared by all requests. Several limits cost one round
/// trip together. In a cluster their keys may be at several servers: then each costs one, and one
/// more if it is refunded. The same holds if a request names one client of one limit twice.
/// Requests end within 1 s, 2.25 s with a new connection; callers with a shorter timeout stop
/// waiting.
///
/// # Limits
///
/// - A server that loses its data has lost counts. So has a replica that is promoted before it had
///   all of them, and a server that evicts keys because its memory is full.
/// - Where limits are acquired one after the other, a refund at the edge of a window may undo newer
///   requests than its own. These count as older ones then, and expire up to a window earlier.
pub struct ValkeyCounts {
    route: Route,
    keys: Keys,
    script: AcquireScript,
    /// Name of the store, without secrets.
    store_name: String,
    disagreements: AtomicU64,
}

impl ValkeyCounts {
    /// Creates counts at this address; `prefix` begins all keys. Opens no connection yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the trusted certificates for TLS cannot be read.
    pub fn new(address: &ValkeyAddress, prefix: &str) -> Result<Self, SetupError> {
        Self::by(AcquireScript::new(None), address, prefix)
    }

    /// Creates counts with the clock of a test. Values are kept for an hour more then, as the
    /// server expires them by its own clock.
    ///
    /// # Errors
    ///
    /// Those of [`Self::new`].
    #[doc(hidden)]
    pub fn with_time(
        address: &ValkeyAddress,
        prefix: &str,
        time: TestTime,
    ) -> Result<Self, SetupError> {
        Self::by(AcquireScript::new(Some(time)), address, prefix)
    }

    fn by(
        script: AcquireScript,
        address: &ValkeyAddress,
        prefix: &str,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            route: Route::new(address)?,
            keys: Keys::new(prefix),
            script,
            store_name: address.to_string(),
            disagreements: AtomicU64::new(0),
        })
    }

    /// Returns how often the script decided otherwise than the algorithm. The script's decision
    /// applies, as it is what was counted. Anything but zero is a bug.
    #[must_use]
    pub fn disagreements(&self) -> u64 {
        self.disagreements.load(Ordering::Relaxed)
    }

    /// Ends all connections; later requests fail.
    pub fn close(&self) {
        self.route.close();
    }

    /// Calls the script once.
    async fn call_script(
        &self,
        acquires: &[SharedAcquire<'_>],
        mode: AcquireMode,
    ) -> Result<Vec<ScriptVerdict>, CountsError> {
        let key = |acquire: &SharedAcquire<'_>| self.keys.client(acquire.limit, acquire.key);
        let keys: Vec<String> = acquires.iter().map(key).collect();
        let called = self.script.call(&self.route, &keys, acquires, mode);
        let called = called.await;
        called.map_err(|failure| failure.into_counts_error(&self.store_name))
    }

    /// Acquires one by one, for keys at several servers or a key that occurs twice.
    async fn acquire_one_by_one(
        &self,
        acquires: &[SharedAcquire<'_>],
    ) -> Result<Vec<Verdict>, CountsError> {
        // Refunds are never rejected, so as the last ones they never need to be undone.
        let is_refund = |at: &usize| matches!(acquires[*at].cost, Cost::Refund(_));
        let mut order: Vec<usize> = (0..acquires.len()).collect();
        order.sort_by_key(is_refund);
        let mut all: Vec<(usize, ScriptVerdict)> = Vec::with_capacity(acquires.len());
        let mut is_admitted = true;
        for at in order {
            let mode = if is_admitted {
                AcquireMode::IfAdmitted
            } else {
                AcquireMode::Never
            };
            let called = self.call_script(&acquires[at..=at], mode).await;
            let called = called.and_then(|verdicts| one(verdicts, &self.store_name));
            match called {
                Ok(decision) => {
                    is_admitted &= decision.admits;
                    all.push((at, decision));
                }
                Err(error) => {
                    self.undo(acquires, &all).await;
                    return Err(error);
                }
            }
        }
        if !is_admitted {
            self.undo(acquires, &all).await;
        }
        all.sort_by_key(|(at, _)| *at);
        let decisions: Vec<ScriptVerdict> = all.into_iter().map(|(_, one)| one).collect();
        Ok(self.verdicts(acquires, &decisions))
    }

    /// Refunds what was acquired before one limit rejected. If that fails it stays counted: then
    /// fewer requests are admitted, and none too many.
    async fn undo(&self, acquires: &[SharedAcquire<'_>], decisions: &[(usize, ScriptVerdict)]) {
        let acquired = decisions.iter().take_while(|(_, one)| one.admits);
        for (at, _) in acquired {
            let Cost::Take(taken) = acquires[*at].cost else {
                continue;
            };
            let refund = SharedAcquire {
                cost: Cost::Refund(taken),
                ..acquires[*at]
            };
            if let Err(error) = self.call_script(&[refund], AcquireMode::IfAdmitted).await {
                let limit = refund.limit;
                tracing::warn!(%error, limit, "cannot refund rejected requests: they stay counted");
            }
        }
    }

    fn verdicts(
        &self,
        acquires: &[SharedAcquire<'_>],
        decisions: &[ScriptVerdict],
    ) -> Vec<Verdict> {
        let is_admitted = decisions.iter().all(|decision| decision.admits);
        let both = acquires.iter().zip(decisions);
        let verdict = |(acquire, decision): (&SharedAcquire<'_>, &ScriptVerdict)| {
            let verdict = self.verdict(acquire, decision);
            if is_admitted || !decision.admits {
                return verdict;
            }
            let mut prior = decision.prior.clone();
            acquire.policy.step(&mut prior, decision.now, Cost::Peek)
        };
        both.map(verdict).collect()
    }

    fn verdict(&self, acquire: &SharedAcquire<'_>, decision: &ScriptVerdict) -> Verdict {
        let mut prior = decision.prior.clone();
        let mut verdict = acquire.policy.step(&mut prior, decision.now, acquire.cost);
        if verdict.is_allowed() == decision.admits {
            return verdict;
        }
        self.disagreements.fetch_add(1, Ordering::Relaxed);
        let limit = &acquire.limit;
        tracing::error!(
            limit,
            admitted_by_script = decision.admits,
            "script and algorithm disagree: please report this"
        );
        debug_assert!(
            false,
            "script and algorithm disagree: {acquire:?} {decision:?}"
        );
        verdict.outcome = if decision.admits {
            Outcome::Allow {
                delay: DurationUs::ZERO,
            }
        } else {
            Outcome::Reject {
                retry_after: Some(verdict.full_after),
            }
        };
        verdict
    }
}

/// Returns whether one client of one limit occurs twice. The list is short, and so are the names.
fn has_duplicate_key(acquires: &[SharedAcquire<'_>]) -> bool {
    let mut rest = acquires.iter();
    while let Some(one) = rest.next() {
        let is_same = |other: &SharedAcquire<'_>| (other.limit, other.key) == (one.limit, one.key);
        if rest.clone().any(is_same) {
            return true;
        }
    }
    false
}

/// Returns the script's verdict on one acquire.
fn one(decisions: Vec<ScriptVerdict>, store_name: &str) -> Result<ScriptVerdict, CountsError> {
    decisions
        .into_iter()
        .next()
        .ok_or_else(|| CountsError::Late {
            store_name: store_name.to_owned(),
            source: "the reply has no verdict".into(),
        })
}

/// Returns whether the scripts count this limit exactly.
pub(crate) fn is_exact(policy: &Policy) -> bool {
    years_ahead(policy) <= YEARS_EXACT
}

impl SharedCounts for ValkeyCounts {
    fn kind(&self) -> &'static str {
        "valkey"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        vec![("disagreement", self.disagreements())]
    }

    /// Checks a limit; rejects bursts and queues of more than 142 years, too, which the script
    /// could not count exactly.
    fn check(&self, limit: &str, policy: &Policy) -> Result<(), UnfitError> {
        shared::check_needs(self.kind(), self.offers(), limit, policy)?;
        if is_exact(policy) {
            return Ok(());
        }
        let years = years_ahead(policy);
        Err(UnfitError::TooFarAhead {
            limit: limit.to_owned(),
            algorithm: policy.kind().name(),
            years,
            store: self.kind(),
            years_max: YEARS_EXACT,
        })
    }

    fn acquire<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            for acquire in acquires {
                // A limit that was not checked at the start must not be counted wrongly.
                if let Err(error) = self.check(acquire.limit, acquire.policy) {
                    return Err(CountsError::Rejected {
                        store_name: self.store_name.clone(),
                        refusal: "cannot count this limit exactly",
                        remedy: "lower its burst or its queue",
                        source: Box::new(error),
                    });
                }
            }
            match acquires {
                [] => Ok(Vec::new()),
                [_, _, ..] if !self.route.is_one_server() || has_duplicate_key(acquires) => {
                    self.acquire_one_by_one(acquires).await
                }
                acquires => {
                    let decisions = self.call_script(acquires, AcquireMode::IfAdmitted).await?;
                    Ok(self.verdicts(acquires, &decisions))
                }
            }
        })
    }
}

impl fmt::Debug for ValkeyCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValkeyCounts({})", self.store_name)
    }
}
