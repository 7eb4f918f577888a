//! The file is a store of records, and counts by leases from it do what they must.

use std::sync::Arc;

use anteroom_limit::time::DurationUs;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::conformance::{Stage, leases, lent};
use anteroom_limit_store::lending::{LeasedCounts, Settings};
use anteroom_limit_store::lent::LeaseRecords;
use anteroom_limit_store::shared::{BoxFuture, SharedCounts, TestTime};

use crate::lent::folder::Folder;

#[derive(Debug)]
struct Leases {
    time: TestTime,
    file: Arc<dyn LeaseRecords>,
}

impl Stage for Leases {
    fn node(&self) -> Arc<dyn SharedCounts> {
        let clock = Arc::new(self.time.clone());
        // One file has one process; several of these are what one makes after another.
        let counts = LeasedCounts::with_clock(Arc::clone(&self.file), Settings::default(), clock);
        Arc::new(counts.unwrap())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(&self, _: &'static str, _: CallKey) -> BoxFuture<'_, Option<DurationUs>> {
        // When somebody is forgotten is what `bounds` looks at.
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn it_is_a_store_of_records() {
    let folder = Folder::new();
    lent::check(&folder.start()).await.unwrap();
}

#[tokio::test]
async fn counts_by_leases_pass_conformance_and_a_new_file_lends_at_once() {
    let folder = Folder::new();
    let file = Arc::new(folder.start());
    let time = folder.time.clone();
    leases::check(&Leases { time, file }).await.unwrap();
}
