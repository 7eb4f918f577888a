//! Counts of calls at the server: exact across nodes, in one round trip.
//!
//! A script decides and charges, at the server's own time; all the arithmetic in it is exact. What
//! it answers is what was remembered before, so the verdict is made here, by the algorithm itself:
//! what callers are told has one source. If that source comes to another decision than the script,
//! one of them is wrong: see [`ValkeyCounts::disagreements`].

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

use self::script::{AcquireMode, ChargeScript, ScriptVerdict};
use crate::access::SetupError;
use crate::keys::Keys;
use crate::route::Route;

/// Counts on Valkey or Redis.
///
/// One connection to each server, shared by all who call. Several limits cost one round trip
/// together; in a cluster, where their keys live at several servers, one each, and one more for
/// each that is refunded. The same is so if one client of one limit stands twice in a call. Calls
/// end within 1 s, 2.25 s if a connection has to be made first; who has less patience stops
/// waiting.
///
/// # What it cannot do
///
/// - A server that loses its data, or a replica that is promoted before it had them all, has
///   forgotten calls; so has one that evicts keys because its memory is full.
/// - Where limits are charged one after the other, a refund at the edge of a window may undo newer
///   calls than those it is for; they count as older ones then, and are over earlier by up to a
///   window.
pub struct ValkeyCounts {
    route: Route,
    keys: Keys,
    script: ChargeScript,
    /// Where it is, without secrets.
    place: String,
    disagreements: AtomicU64,
}

impl ValkeyCounts {
    /// Counts at this address; `prefix` begins the names of all keys. Opens nothing yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if TLS is wanted and whom to trust cannot be read.
    pub fn new(address: &ValkeyAddress, prefix: &str) -> Result<Self, SetupError> {
        Self::by(ChargeScript::new(None), address, prefix)
    }

    /// The same at a time that a test brings along. Values are kept for an hour more then, as the
    /// server goes by its own clock in that.
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
        Self::by(ChargeScript::new(Some(time)), address, prefix)
    }

    fn by(script: ChargeScript, address: &ValkeyAddress, prefix: &str) -> Result<Self, SetupError> {
        Ok(Self {
            route: Route::new(address)?,
            keys: Keys::new(prefix),
            script,
            place: address.to_string(),
            disagreements: AtomicU64::new(0),
        })
    }

    /// How often the script came to another decision than the algorithm itself. The script's held,
    /// for that is what was charged. Anything but zero is a mistake in the program.
    #[must_use]
    pub fn disagreements(&self) -> u64 {
        self.disagreements.load(Ordering::Relaxed)
    }

    /// Ends all connections; later calls fail.
    pub fn close(&self) {
        self.route.close();
    }

    /// One call of the script.
    async fn ask(
        &self,
        charges: &[SharedAcquire<'_>],
        charging: AcquireMode,
    ) -> Result<Vec<ScriptVerdict>, CountsError> {
        let key = |charge: &SharedAcquire<'_>| self.keys.calls(charge.limit, charge.key);
        let keys: Vec<String> = charges.iter().map(key).collect();
        let judged = self.script.call(&self.route, &keys, charges, charging);
        let judged = judged.await;
        judged.map_err(|failure| failure.into_counts_error(&self.place))
    }

    /// For keys at several servers, and for a key that stands there twice.
    async fn charge_one_by_one(
        &self,
        charges: &[SharedAcquire<'_>],
    ) -> Result<Vec<Verdict>, CountsError> {
        // Refunds are never rejected, so behind all others none must ever be undone.
        let is_refund = |at: &usize| matches!(charges[*at].cost, Cost::Refund(_));
        let mut order: Vec<usize> = (0..charges.len()).collect();
        order.sort_by_key(is_refund);
        let mut all: Vec<(usize, ScriptVerdict)> = Vec::with_capacity(charges.len());
        let mut is_admitted = true;
        for at in order {
            let charging = if is_admitted {
                AcquireMode::IfAdmitted
            } else {
                AcquireMode::Never
            };
            let asked = self.ask(&charges[at..=at], charging).await;
            let asked = asked.and_then(|judged| one(judged, &self.place));
            match asked {
                Ok(judged) => {
                    is_admitted &= judged.admits;
                    all.push((at, judged));
                }
                Err(error) => {
                    self.take_back(charges, &all).await;
                    return Err(error);
                }
            }
        }
        if !is_admitted {
            self.take_back(charges, &all).await;
        }
        all.sort_by_key(|(at, _)| *at);
        let judged: Vec<ScriptVerdict> = all.into_iter().map(|(_, judged)| judged).collect();
        Ok(self.verdicts(charges, &judged))
    }

    /// Refunds what was charged before one was rejected. If that fails they stay charged: fewer are
    /// admitted then, and none too many.
    async fn take_back(&self, charges: &[SharedAcquire<'_>], judged: &[(usize, ScriptVerdict)]) {
        let charged = judged.iter().take_while(|(_, judged)| judged.admits);
        for (at, _) in charged {
            let Cost::Take(taken) = charges[*at].cost else {
                continue;
            };
            let refund = SharedAcquire {
                cost: Cost::Refund(taken),
                ..charges[*at]
            };
            if let Err(error) = self.ask(&[refund], AcquireMode::IfAdmitted).await {
                let limit = refund.limit;
                tracing::warn!(%error, limit, "calls that were rejected stay charged");
            }
        }
    }

    fn verdicts(&self, charges: &[SharedAcquire<'_>], judged: &[ScriptVerdict]) -> Vec<Verdict> {
        let is_admitted = judged.iter().all(|judged| judged.admits);
        let both = charges.iter().zip(judged);
        let verdict = |(charge, judged): (&SharedAcquire<'_>, &ScriptVerdict)| {
            let verdict = self.verdict(charge, judged);
            if is_admitted || !judged.admits {
                return verdict;
            }
            let mut prior = judged.prior.clone();
            charge.policy.step(&mut prior, judged.now, Cost::Peek)
        };
        both.map(verdict).collect()
    }

    fn verdict(&self, charge: &SharedAcquire<'_>, judged: &ScriptVerdict) -> Verdict {
        let mut prior = judged.prior.clone();
        let mut verdict = charge.policy.step(&mut prior, judged.now, charge.cost);
        if verdict.is_admitted() == judged.admits {
            return verdict;
        }
        self.disagreements.fetch_add(1, Ordering::Relaxed);
        let limit = &charge.limit;
        tracing::error!(
            limit,
            admitted_by_script = judged.admits,
            "the script disagrees; please report this"
        );
        debug_assert!(false, "the script disagrees: {charge:?} {judged:?}");
        verdict.outcome = if judged.admits {
            Outcome::Admit {
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

/// Whether one client of one limit stands there twice. They are few, and the names of limits short.
fn has_a_key_twice(charges: &[SharedAcquire<'_>]) -> bool {
    let mut rest = charges.iter();
    while let Some(one) = rest.next() {
        let is_same = |other: &SharedAcquire<'_>| (other.limit, other.key) == (one.limit, one.key);
        if rest.clone().any(is_same) {
            return true;
        }
    }
    false
}

/// The answer about one charge.
fn one(judged: Vec<ScriptVerdict>, place: &str) -> Result<ScriptVerdict, CountsError> {
    judged.into_iter().next().ok_or_else(|| CountsError::Late {
        place: place.to_owned(),
        source: "an answer about nothing".into(),
    })
}

/// Whether scripts can count by this limit exactly.
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

    /// Beside what is needed: bursts and queues that are over in 142 years. Longer ones the script
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

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            for charge in charges {
                // Whoever did not ask at the start must not be counted wrongly.
                if let Err(error) = self.check(charge.limit, charge.policy) {
                    return Err(CountsError::Refused {
                        place: self.place.clone(),
                        refusal: "cannot count this limit exactly",
                        remedy: "lower its burst or its queue",
                        source: Box::new(error),
                    });
                }
            }
            match charges {
                [] => Ok(Vec::new()),
                [_, _, ..] if !self.route.is_one_server() || has_a_key_twice(charges) => {
                    self.charge_one_by_one(charges).await
                }
                charges => {
                    let judged = self.ask(charges, AcquireMode::IfAdmitted).await?;
                    Ok(self.verdicts(charges, &judged))
                }
            }
        })
    }
}

impl fmt::Debug for ValkeyCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValkeyCounts({})", self.place)
    }
}
