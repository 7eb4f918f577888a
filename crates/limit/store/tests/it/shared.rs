//! Counts of this process do what every store of counts must do.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anteroom_limit::policy::Needs;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::conformance::{self, Stage};
use anteroom_limit_store::local::{LocalAcquire, LocalCounts, charge_all};
use anteroom_limit_store::mixed::{MixedAcquire, MixedCounts};
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime};
use anteroom_limit_store::{CallKey, KeyMaker};

/// Counts of this process for whichever limits are named.
#[derive(Clone, Debug, Default)]
struct LocalShared {
    limits: Arc<Mutex<BTreeMap<String, Arc<LocalCounts>>>>,
    time: TestTime,
}

impl LocalShared {
    fn of(&self, limit: &str) -> Arc<LocalCounts> {
        let mut limits = self.limits.lock().unwrap();
        let new = || Arc::new(LocalCounts::new(1_000));
        Arc::clone(limits.entry(limit.to_owned()).or_insert_with(new))
    }
}

impl SharedCounts for LocalShared {
    fn kind(&self) -> &'static str {
        "this process"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let counts: Vec<_> = charges.iter().map(|charge| self.of(charge.limit)).collect();
            let charges: Vec<_> = counts
                .iter()
                .zip(charges)
                .map(|(counts, charge)| LocalAcquire {
                    counts,
                    policy: charge.policy,
                    key: charge.key,
                    cost: charge.cost,
                    // A store that is shared holds nobody: whoever asks does.
                    patience: DurationUs(u64::MAX),
                })
                .collect();
            let mut verdicts = Vec::new();
            charge_all(&charges, self.time.now(), &mut verdicts);
            Ok(verdicts)
        })
    }
}

impl Stage for LocalShared {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::new(self.clone())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(&self, _: &'static str, _: CallKey) -> BoxFuture<'_, Option<DurationUs>> {
        Box::pin(async { None })
    }
}

/// One memory of this process for whichever limits are named: their names go into the keys, as
/// whoever uses it must see to.
#[derive(Clone, Debug)]
struct MixedShared {
    counts: Arc<MixedCounts>,
    time: TestTime,
}

impl SharedCounts for MixedShared {
    fn kind(&self) -> &'static str {
        "this process"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let charges: Vec<_> = charges
                .iter()
                .map(|charge| MixedAcquire {
                    policy: charge.policy,
                    key: KeyMaker::shared(charge.limit).key([&charge.key.0.to_le_bytes()[..]]),
                    cost: charge.cost,
                })
                .collect();
            let mut verdicts = Vec::new();
            self.counts
                .charge_all(&charges, self.time.now(), &mut verdicts);
            Ok(verdicts)
        })
    }
}

impl Stage for MixedShared {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::new(self.clone())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(&self, _: &'static str, _: CallKey) -> BoxFuture<'_, Option<DurationUs>> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn many_limits_in_one_memory_are_a_store() {
    let stage = MixedShared {
        counts: Arc::new(MixedCounts::new(10_000)),
        time: TestTime::default(),
    };
    conformance::check(&stage).await.unwrap();
}

#[tokio::test]
async fn counts_of_this_process_are_a_store() {
    conformance::check(&LocalShared::default()).await.unwrap();
}
