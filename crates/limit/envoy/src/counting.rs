//! Where is it counted? In this process, or in a store that nodes share.

use std::fmt;
use std::sync::Arc;

use crate::config::CounterIdentity;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::local::Fill;
use anteroom_limit_store::mixed::MixedCounts;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts};
use anteroom_limit_store::{CallKey, KeyMaker};
use futures_util::future::try_join_all;

pub(crate) use anteroom_limit_store::mixed::MixedAcquire as LocalAcquire;

use crate::policy::{LIMIT_NAME, kind_of};

/// Where calls are counted.
#[derive(Clone)]
pub enum Counts {
    /// In this process.
    Local(Arc<MixedCounts>),
    /// In a store that nodes share.
    Shared(Arc<dyn SharedCounts>),
}

impl Counts {
    /// What makes the keys of counters here.
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

    /// Charges all of these or none; the verdicts come in their order.
    pub(crate) async fn charge_all(
        &self,
        charges: &[LocalAcquire<'_>],
        now: TimestampUs,
    ) -> Result<Vec<Verdict>, CountsError> {
        if charges.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Self::Local(counts) => {
                let mut verdicts = Vec::with_capacity(charges.len());
                counts.charge_all(charges, now, &mut verdicts);
                Ok(verdicts)
            }
            Self::Shared(store) => {
                let charges: Vec<_> = charges.iter().map(shared).collect();
                let verdicts = store.charge(&charges).await?;
                debug_assert_eq!(verdicts.len(), charges.len());
                Ok(verdicts)
            }
        }
    }

    /// Charges each of these alone, whatever becomes of the others.
    pub(crate) async fn charge_each(
        &self,
        charges: &[LocalAcquire<'_>],
        now: TimestampUs,
    ) -> Result<Vec<Verdict>, CountsError> {
        match self {
            Self::Local(counts) => {
                let mut verdicts = Vec::with_capacity(charges.len());
                let mut one = Vec::with_capacity(1);
                for charge in charges {
                    counts.charge_all(&[*charge], now, &mut one);
                    verdicts.append(&mut one);
                }
                Ok(verdicts)
            }
            // At once: each is a round trip.
            Self::Shared(_) => {
                let each = charges.iter().map(|charge| async move {
                    self.charge_all(std::slice::from_ref(charge), now).await
                });
                let all = try_join_all(each).await?;
                Ok(all.into_iter().flatten().collect())
            }
        }
    }
}

/// The same, as stores that nodes share are asked.
const fn shared<'c>(charge: &LocalAcquire<'c>) -> SharedAcquire<'c> {
    let LocalAcquire { policy, key, cost } = *charge;
    SharedAcquire {
        limit: LIMIT_NAME,
        policy,
        key,
        cost,
    }
}

/// The key of a counter: what is counted, and how. A limit that becomes another begins anew.
pub(crate) fn key_of(keys: &KeyMaker, counter: &CounterIdentity, policy: &Policy) -> CallKey {
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
