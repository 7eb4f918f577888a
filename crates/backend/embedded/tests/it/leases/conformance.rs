//! Conformance of the file, and of counts by leases from it.

use std::sync::Arc;

use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::conformance::{Harness, lease_store, leases};
use anteroom_limit_store::lease_store::LeaseRecords;
use anteroom_limit_store::leases::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{BoxFuture, SharedCounts, TestTime};

use crate::leases::folder::Folder;

#[derive(Debug)]
struct Leases {
    time: TestTime,
    file: Arc<dyn LeaseRecords>,
}

impl Harness for Leases {
    fn node(&self) -> Arc<dyn SharedCounts> {
        let clock = Arc::new(self.time.clone());
        // A file has one process, so several nodes are what one process starts in turn.
        let counts = LeasedCounts::with_clock(Arc::clone(&self.file), Settings::default(), clock);
        Arc::new(counts.unwrap())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(&self, _: &'static str, _: ClientKey) -> BoxFuture<'_, Option<DurationUs>> {
        // The tests in `bounds` check the removal of clients.
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn the_lease_file_conforms() {
    let folder = Folder::new();
    lease_store::check(&folder.start()).await.unwrap();
}

#[tokio::test]
async fn counts_by_leases_from_a_new_file_conform() {
    let folder = Folder::new();
    let file = Arc::new(folder.start());
    let time = folder.time.clone();
    leases::check(&Leases { time, file }).await.unwrap();
}
