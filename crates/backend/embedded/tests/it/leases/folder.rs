//! Folder with a lease file, and reads and writes of it.

use std::fs::File;
use std::path::PathBuf;

use std::sync::Arc;

use anteroom_embedded::DataDir;
use anteroom_embedded::leases::{Bounds, FileClock, LeaseFile};
use anteroom_limit::leases::epoch::{
    Before, Epoch, EpochDecision, EpochId, EpochObservation, decide,
};
use anteroom_limit::leases::members::Reports;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::lease_store::{
    LeaseKey, LeaseRecords as _, Loaded, Partition, Swapped, Token, Write,
};
use anteroom_limit_store::leases::record::decode_epoch;
use anteroom_limit_store::shared::{CountsError, TestTime};
use redb::{Database, DatabaseError};
use tempfile::TempDir;

/// Start time of every test.
pub(crate) const BEGIN: TimestampUs = TimestampUs(1_767_225_600_000_000);
/// Time for which clients are kept.
pub(crate) const KEPT: DurationUs = DurationUs::from_secs(60);

const PARTITION: Partition = Partition(0);

/// Temporary folder.
pub(crate) struct Folder {
    temp: TempDir,
    pub(crate) time: TestTime,
}

/// Clock of the test.
#[derive(Debug)]
pub(crate) struct TestClock(TestTime);

impl FileClock for TestClock {
    fn now(&self) -> TimestampUs {
        self.0.now()
    }

    fn never_before(&self, at: TimestampUs) {
        self.0.set(self.0.now().max(at));
    }
}

impl Folder {
    pub(crate) fn new() -> Self {
        let time = TestTime::default();
        time.set(BEGIN);
        let temp = tempfile::tempdir().unwrap();
        Self { temp, time }
    }

    /// Opens the file like a process that starts now.
    pub(crate) fn start(&self) -> LeaseFile {
        self.start_with(Bounds::default())
    }

    pub(crate) fn start_with(&self, bounds: Bounds) -> LeaseFile {
        LeaseFile::with_clock(self.dir(), self.clock(), bounds)
    }

    /// Opens the file on another disk.
    pub(crate) fn start_on(
        &self,
        opener: impl Fn(File) -> Result<Database, DatabaseError> + Send + Sync + 'static,
    ) -> LeaseFile {
        LeaseFile::with(self.dir(), self.clock(), Bounds::default(), opener)
    }

    fn dir(&self) -> DataDir {
        DataDir::open(&self.temp.path().join("data")).unwrap()
    }

    fn clock(&self) -> Arc<TestClock> {
        Arc::new(TestClock(self.time.clone()))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join("data").join(name)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path("lent.redb")
    }

    /// Returns the sorted names of all files.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.temp.path().join("data")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Folder {
    /// Loads a record like a process that starts now and ends at once.
    pub(crate) async fn load_once(&self, key: u128) -> Result<Loaded, CountsError> {
        let file = self.start();
        let loaded = load(&file, key).await;
        file.close().await;
        loaded
    }
}

pub(crate) fn client(key: u128) -> LeaseKey<'static> {
    let key = ClientKey(key);
    LeaseKey { limit: "api", key }
}

pub(crate) async fn load(file: &LeaseFile, key: u128) -> Result<Loaded, CountsError> {
    file.load(PARTITION, Some(client(key))).await
}

/// Overwrites a record.
pub(crate) async fn write(
    file: &LeaseFile,
    key: u128,
    token: u128,
    value: &[u8],
) -> Result<Swapped, CountsError> {
    let expected = load(file, key).await?.expected();
    let token = Token(token);
    let write = Write {
        expected,
        token,
        value,
    };
    file.swap(PARTITION, client(key), write, KEPT).await
}

/// Overwrites a record, and asserts success.
pub(crate) async fn must_write(file: &LeaseFile, key: u128, token: u128, value: &[u8]) {
    let swapped = write(file, key, token, value).await.unwrap();
    assert_eq!(swapped, Swapped::Written);
}

/// Returns the token of a client's record; 0 if there is none.
pub(crate) async fn token(file: &LeaseFile, key: u128) -> u128 {
    load(file, key).await.unwrap().expected().client.0
}

pub(crate) fn epoch(loaded: &Loaded) -> Epoch {
    let kept = loaded.epoch.as_ref().expect("a file begins with an epoch");
    decode_epoch(&kept.value).unwrap()
}

/// Returns the state before the epoch, as a node decides that has seen `witnessed` last.
pub(crate) fn before(loaded: &Loaded, witnessed: Option<EpochId>) -> Before {
    let found = epoch(loaded);
    let decision = decide(EpochObservation {
        record: Some(&found),
        identity: loaded.identity,
        longest_loss: loaded.longest_loss,
        reports: Reports::Missing,
        now: loaded.now,
        witnessed,
        random: 1,
    });
    match decision {
        EpochDecision::InForce(epoch) | EpochDecision::Write(epoch) => epoch.before,
        EpochDecision::Reporting(..) => unreachable!("a file promises nothing"),
    }
}
