//! Conformance of the counts in this process.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anteroom_limit::policy::Needs;
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::conformance::{self, Harness};
use anteroom_limit_store::local::{LocalAcquire, LocalCounts, acquire_all};
use anteroom_limit_store::mixed::{MixedAcquire, MixedCounts};
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime};
use anteroom_limit_store::{ClientKey, KeyMaker};

/// Counts of this process, one per limit name.
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

    fn acquire<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let counts: Vec<_> = acquires
                .iter()
                .map(|acquire| self.of(acquire.limit))
                .collect();
            let acquires: Vec<_> = counts
                .iter()
                .zip(acquires)
                .map(|(counts, acquire)| LocalAcquire {
                    counts,
                    policy: acquire.policy,
                    key: acquire.key,
                    cost: acquire.cost,
                    // A shared store delays no request; its callers do.
                    delay_max: DurationUs(u64::MAX),
                })
                .collect();
            let mut verdicts = Vec::new();
            acquire_all(&acquires, self.time.now(), &mut verdicts);
            Ok(verdicts)
        })
    }
}

impl Harness for LocalShared {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::new(self.clone())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(&self, _: &'static str, _: ClientKey) -> BoxFuture<'_, Option<DurationUs>> {
        Box::pin(async { None })
    }
}

/// Counts of this process in one table. Names of limits become part of the keys, as callers must
/// ensure.
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

    fn acquire<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            let acquires: Vec<_> = acquires
                .iter()
                .map(|acquire| MixedAcquire {
                    policy: acquire.policy,
                    key: KeyMaker::shared(acquire.limit).key([&acquire.key.0.to_le_bytes()[..]]),
                    cost: acquire.cost,
                })
                .collect();
            let mut verdicts = Vec::new();
            self.counts
                .acquire_all(&acquires, self.time.now(), &mut verdicts);
            Ok(verdicts)
        })
    }
}

impl Harness for MixedShared {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::new(self.clone())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(&self, _: &'static str, _: ClientKey) -> BoxFuture<'_, Option<DurationUs>> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn many_limits_in_one_table_conform() {
    let stage = MixedShared {
        counts: Arc::new(MixedCounts::new(10_000)),
        time: TestTime::default(),
    };
    conformance::check(&stage).await.unwrap();
}

#[tokio::test]
async fn counts_of_this_process_conform() {
    conformance::check(&LocalShared::default()).await.unwrap();
}
