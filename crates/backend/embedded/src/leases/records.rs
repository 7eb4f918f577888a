//! The store of records: what whoever lends sees of the file.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use crate::DataDir;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::lent::{Kept, LeaseKey, LeaseRecords, Loaded, Shelf, Swapped, Write};
use anteroom_limit_store::shared::{BoxFuture, CountsError};
use anteroom_store::Clock;
use redb::{Database, DatabaseError};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::leases::change::{Change, Read};
use crate::leases::failure::Failure;
use crate::leases::file::{Place, open_file};
use crate::leases::queue::{Job, Shared, told};
use crate::leases::tables::Name;
use crate::leases::time::{FileClock, OfRooms};

/// How long a read waits for a predecessor to let go of the file, which it does a moment after its
/// successor serves. Less than whoever lends waits for a store, so that what it is told is the
/// reason.
const HELD_FOR: Duration = Duration::from_millis(400);
/// Between two tries.
const HELD_AGAIN: Duration = Duration::from_millis(20);
/// Between two tries of one for whom nobody waits. A predecessor lets go as soon as its successor
/// serves, so most need one.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// How much a file may keep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// So many bytes of clients, about 200 for each of a usual limit, an eighth of them for those
    /// who are there already. Whoever comes when it is full is told that there is no room, until
    /// somebody's time is over: to forget somebody would be to give its calls back. The file takes
    /// two or three times as much on the disk.
    pub bytes_max: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // More than a million clients.
            bytes_max: 256 << 20,
        }
    }
}

/// Records of calls that are lent, in the data folder. Nothing is opened before the first call.
///
/// One process at a time has the file. Calls must be made in a tokio runtime.
pub struct LeaseFile {
    shared: Arc<Shared>,
    /// Where it is.
    place: String,
}

impl LeaseFile {
    /// In this folder, by the clock of rooms.
    #[must_use]
    pub fn new(dir: DataDir, clock: Arc<dyn Clock>) -> Self {
        let clock = Arc::new(OfRooms(clock));
        Self::with(dir, clock, Bounds::default(), open_file)
    }

    /// The same with whatever a test wants otherwise.
    #[doc(hidden)]
    #[must_use]
    pub fn with(
        dir: DataDir,
        clock: Arc<dyn FileClock>,
        bounds: Bounds,
        opener: impl Fn(File) -> Result<Database, DatabaseError> + Send + Sync + 'static,
    ) -> Self {
        let place = Place {
            dir,
            clock,
            opener: Box::new(opener),
        };
        Self {
            place: format!("the file {}", place.path().display()),
            shared: Arc::new(Shared::new(place, bounds.bytes_max)),
        }
    }

    /// The same as [`LeaseFile::new`] with another clock and other bounds.
    #[doc(hidden)]
    #[must_use]
    pub fn with_clock(dir: DataDir, clock: Arc<dyn FileClock>, bounds: Bounds) -> Self {
        Self::with(dir, clock, bounds, open_file)
    }

    /// Opens the file ahead of the first call, or makes one: a large one takes longer to be looked
    /// through than a call waits. Waits for a predecessor for as long as it has the file, and ends
    /// when this is closed.
    ///
    /// # Errors
    ///
    /// [`CountsError`] if it cannot be opened, or was closed.
    pub async fn open(&self) -> Result<(), CountsError> {
        loop {
            match self.load_once(None).await {
                Err(Failure::Held) => sleep(LOOK_AGAIN).await,
                looked => return looked.map(drop).map_err(|failure| self.failed(failure)),
            }
        }
    }

    /// Lets go of the file, so that a successor has it; later calls fail.
    pub async fn close(&self) {
        let (tell, closed) = oneshot::channel();
        if self.shared.put(Job::Close(tell)).is_ok() {
            // Whoever would tell is gone with the runtime, and the file with it.
            let _ = closed.await;
        }
    }

    async fn load_once(&self, client: Option<Name>) -> Result<Loaded, Failure> {
        let (tell, answer) = oneshot::channel();
        self.shared.put(Job::Read(Read { client, tell }))?;
        told(answer).await
    }

    async fn change(
        &self,
        client: Option<LeaseKey<'_>>,
        write: Write<'_>,
        keep_for: DurationUs,
    ) -> Result<Swapped, Failure> {
        let (tell, answer) = oneshot::channel();
        self.shared.put(Job::Change(Change {
            client: client.map(named),
            expected: write.expected,
            kept: Kept {
                token: write.token,
                value: write.value.to_vec(),
            },
            keep_for,
            tell,
        }))?;
        told(answer).await
    }

    fn failed(&self, failure: Failure) -> CountsError {
        failure.into_counts_error(&self.place)
    }
}

fn named(client: LeaseKey<'_>) -> Name {
    Name {
        limit: client.limit.to_owned(),
        key: client.key.0,
    }
}

impl LeaseRecords for LeaseFile {
    fn place(&self) -> &str {
        &self.place
    }

    fn shelves(&self) -> u32 {
        1
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }

    fn load<'a>(
        &'a self,
        _shelf: Shelf,
        client: Option<LeaseKey<'a>>,
    ) -> BoxFuture<'a, Result<Loaded, CountsError>> {
        Box::pin(async move {
            let until = Instant::now() + HELD_FOR;
            let loaded = loop {
                match self.load_once(client.map(named)).await {
                    Err(Failure::Held) if Instant::now() < until => sleep(HELD_AGAIN).await,
                    loaded => break loaded,
                }
            };
            loaded.map_err(|failure| self.failed(failure))
        })
    }

    fn swap<'a>(
        &'a self,
        _shelf: Shelf,
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
        _shelf: Shelf,
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
        write!(f, "LentFile({})", self.place)
    }
}
