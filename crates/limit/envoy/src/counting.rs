//! Counts of the service: in this process, or in a store that nodes share.

use std::fmt;
use std::sync::Arc;

use crate::config::CounterIdentity;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::local::Fill;
use anteroom_limit_store::mixed::MixedCounts;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts};
use anteroom_limit_store::{ClientKey, KeyMaker};
use futures_util::future::try_join_all;

pub(crate) use anteroom_limit_store::mixed::MixedAcquire as LocalAcquire;

use crate::policy::{LIMIT_NAME, kind_of};

/// Counts of requests.
#[derive(Clone)]
pub enum Counts {
    /// Counts in this process.
    Local(Arc<MixedCounts>),
    /// Counts in a store that nodes share.
    Shared(Arc<dyn SharedCounts>),
}

impl Counts {
    /// Returns the maker of counter keys for these counts.
    pub(crate) fn key_maker(&self) -> Result<KeyMaker, getrandom::Error> {
        Ok(match self {
            Self::Local(_) => {
                let mut secret = [0; 16];
                getrandom::fill(&mut secret)?;
                KeyMaker::new(secret)
            }
            Self::Shared(_) => KeyMaker::shared(LIMIT_NAME),
        })
    }

    pub(crate) fn shared(&self) -> Option<&dyn SharedCounts> {
        match self {
            Self::Local(_) => None,
            Self::Shared(store) => Some(&**store),
        }
    }

    pub(crate) fn fill(&self) -> Option<Fill> {
        match self {
            Self::Local(counts) => Some(counts.fill()),
            Self::Shared(_) => None,
        }
    }

    /// Acquires from all of these limits or from none. The verdicts are in order.
    pub(crate) async fn charge_all(
        &self,
        acquires: &[LocalAcquire<'_>],
        now: TimestampUs,
    ) -> Result<Vec<Verdict>, CountsError> {
        if acquires.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Self::Local(counts) => {
                let mut verdicts = Vec::with_capacity(acquires.len());
                counts.acquire_all(acquires, now, &mut verdicts);
                Ok(verdicts)
            }
            Self::Shared(store) => {
                let acquires: Vec<_> = acquires.iter().map(shared).collect();
                let verdicts = store.acquire(&acquires).await?;
                debug_assert_eq!(verdicts.len(), acquires.len());
                Ok(verdicts)
            }
        }
    }

    /// Acquires from each of these limits independently.
    pub(crate) async fn acquire_each(
        &self,
        acquires: &[LocalAcquire<'_>],
        now: TimestampUs,
    ) -> Result<Vec<Verdict>, CountsError> {
        match self {
            Self::Local(counts) => {
                let mut verdicts = Vec::with_capacity(acquires.len());
                let mut one = Vec::with_capacity(1);
                for acquire in acquires {
                    counts.acquire_all(&[*acquire], now, &mut one);
                    verdicts.append(&mut one);
                }
                Ok(verdicts)
            }
            // Concurrently, as each is a round trip.
            Self::Shared(_) => {
                let each = acquires.iter().map(|acquire| async move {
                    self.charge_all(std::slice::from_ref(acquire), now).await
                });
                let all = try_join_all(each).await?;
                Ok(all.into_iter().flatten().collect())
            }
        }
    }
}

/// Converts an acquisition for a shared store.
const fn shared<'c>(acquire: &LocalAcquire<'c>) -> SharedAcquire<'c> {
    let LocalAcquire { policy, key, cost } = *acquire;
    SharedAcquire {
        limit: LIMIT_NAME,
        policy,
        key,
        cost,
    }
}

/// Returns the key of a counter. It includes the kind of the policy, so that a limit of another
/// kind starts anew.
pub(crate) fn key_of(keys: &KeyMaker, counter: &CounterIdentity, policy: &Policy) -> ClientKey {
    keys.key([counter.as_bytes(), &kind_of(policy)])
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(counts) => counts.fmt(f),
            Self::Shared(store) => store.fmt(f),
        }
    }
}
