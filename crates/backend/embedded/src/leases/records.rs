//! Interface of the file to the lease layer.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use crate::DataDir;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::lease_store::{
    LeaseKey, LeaseRecords, Loaded, Partition, StoredRecord, Swapped, Write,
};
use anteroom_limit_store::shared::{BoxFuture, CountsError};
use anteroom_store::Clock;
use redb::{Database, DatabaseError};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::leases::change::{Change, Read};
use crate::leases::failure::Failure;
use crate::leases::file::{Location, open_file};
use crate::leases::queue::{Job, Shared, reply_of};
use crate::leases::tables::Name;
use crate::leases::time::{FileClock, RoomFileClock};

/// Longest wait of a read for a predecessor that still has the file; it releases the file soon
/// after its successor serves. It is shorter than the lease layer's timeout, so that the caller
/// gets the reason.
const HELD_TIME_OUT: Duration = Duration::from_millis(400);
/// Pause between two attempts of a read.
const HELD_RETRY: Duration = Duration::from_millis(20);
/// Pause between two attempts to open the file ahead. No request waits for it, and most need one
/// attempt.
const OPEN_RETRY: Duration = Duration::from_millis(250);

/// Limits of a file's size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// Most bytes of clients' records, about 200 for a client of a usual limit. An eighth is
    /// reserved for known clients. New clients of a full file fail as busy until a record ends: an
    /// earlier removal would refund what the client has spent. The file is two or three times as
    /// large.
    pub bytes_max: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // Enough for more than a million clients.
            bytes_max: 256 << 20,
        }
    }
}

/// Records of rate-limit leases in the data folder. The file is opened with the first operation.
///
/// One process at a time has the file. Its methods need a tokio runtime.
pub struct LeaseFile {
    shared: Arc<Shared>,
    /// Name of the file, for errors.
    store_name: String,
}

impl LeaseFile {
    /// Returns the lease file of a folder, by the clock of rooms.
    #[must_use]
    pub fn new(dir: DataDir, clock: Arc<dyn Clock>) -> Self {
        let clock = Arc::new(RoomFileClock(clock));
        Self::with(dir, clock, Bounds::default(), open_file)
    }

    /// Variant of [`new`](Self::new) with all parts given, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with(
        dir: DataDir,
        clock: Arc<dyn FileClock>,
        bounds: Bounds,
        opener: impl Fn(File) -> Result<Database, DatabaseError> + Send + Sync + 'static,
    ) -> Self {
        let location = Location {
            dir,
            clock,
            opener: Box::new(opener),
        };
        Self {
            store_name: format!("the file {}", location.path().display()),
            shared: Arc::new(Shared::new(location, bounds.bytes_max)),
        }
    }

    /// Variant of [`new`](Self::new) with another clock and other bounds.
    #[doc(hidden)]
    #[must_use]
    pub fn with_clock(dir: DataDir, clock: Arc<dyn FileClock>, bounds: Bounds) -> Self {
        Self::with(dir, clock, bounds, open_file)
    }

    /// Opens or creates the file ahead of the first operation: checking a large one takes longer
    /// than an operation waits. Waits as long as a predecessor has the file, and ends when this
    /// store is closed.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if it cannot be opened, or was closed.
    pub async fn open(&self) -> Result<(), CountsError> {
        loop {
            match self.load_once(None).await {
                Err(Failure::Held) => sleep(OPEN_RETRY).await,
                opened => return opened.map(drop).map_err(|failure| self.failed(failure)),
            }
        }
    }

    /// Releases the file for a successor. Later operations fail.
    pub async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.shared.push(Job::Close(reply)).is_ok() {
            // An error means that the runtime has ended, and the file is closed.
            let _ = closed.await;
        }
    }

    async fn load_once(&self, client: Option<Name>) -> Result<Loaded, Failure> {
        let (reply, receiver) = oneshot::channel();
        self.shared.push(Job::Read(Read { client, reply }))?;
        reply_of(receiver).await
    }

    async fn change(
        &self,
        client: Option<LeaseKey<'_>>,
        write: Write<'_>,
        keep_for: DurationUs,
    ) -> Result<Swapped, Failure> {
        let (reply, receiver) = oneshot::channel();
        self.shared.push(Job::Change(Change {
            client: client.map(named),
            expected: write.expected,
            kept: StoredRecord {
                token: write.token,
                value: write.value.to_vec(),
            },
            keep_for,
            reply,
        }))?;
        reply_of(receiver).await
    }

    fn failed(&self, failure: Failure) -> CountsError {
        failure.into_counts_error(&self.store_name)
    }
}

fn named(client: LeaseKey<'_>) -> Name {
    Name {
        limit: client.limit.to_owned(),
        key: client.key.0,
    }
}

impl LeaseRecords for LeaseFile {
    fn store_name(&self) -> &str {
        &self.store_name
    }

    fn partitions(&self) -> u32 {
        1
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }

    fn load<'a>(
        &'a self,
        _partition: Partition,
        client: Option<LeaseKey<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>> {
        Box::pin(async move {
            let deadline = Instant::now() + HELD_TIME_OUT;
            let loaded = loop {
                match self.load_once(client.map(named)).await {
                    Err(Failure::Held) if Instant::now() < deadline => sleep(HELD_RETRY).await,
                    loaded => break loaded,
                }
            };
            loaded.map_err(|failure| self.failed(failure))
        })
    }

    fn swap<'a>(
        &'a self,
        _partition: Partition,
        client: LeaseKey<'a>,
        write: Write<'a>,
        keep_for: DurationUs,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        Box::pin(async move {
            let swapped = self.change(Some(client), write, keep_for).await;
            swapped.map_err(|failure| self.failed(failure))
        })
    }

    fn swap_epoch<'a>(
        &'a self,
        _partition: Partition,
        write: Write<'a>,
    ) -> BoxFuture<'a, Result<Swapped, CountsError>> {
        Box::pin(async move {
            let swapped = self.change(None, write, DurationUs::ZERO).await;
            swapped.map_err(|failure| self.failed(failure))
        })
    }
}

impl fmt::Debug for LeaseFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseFile({})", self.store_name)
    }
}
