//! Who waits for the file? One at a time takes all that do, where waiting for a disk harms nobody.
//!
//! Reads are answered at once, from what has reached the disk; writes together, when they have. A
//! disk that hangs holds one thread, and as many jobs as there may be.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anteroom_limit_store::lent::Loaded;
use parking_lot::Mutex;
use redb::ReadableDatabase as _;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::leases::change::{Change, Read, Setting, write_all};
use crate::leases::failure::{Failure, cause};
use crate::leases::file::{Open, Place};
use crate::leases::tables::{Name, ReadTables};

/// So many wait at once: as many as whoever lends asks at once, four times over. More are told that
/// there is no time.
const JOBS_MAX: usize = 4_096;

/// What is wanted of the file.
pub(crate) enum Job {
    Read(Read),
    Change(Change),
    Close(oneshot::Sender<()>),
}

/// The file, and who waits for it.
pub(crate) struct Shared {
    waiting: Mutex<Waiting>,
    file: Mutex<Keeper>,
}

#[derive(Default)]
struct Waiting {
    jobs: Vec<Job>,
    /// Somebody takes them.
    is_served: bool,
}

/// What whoever takes them works on.
struct Keeper {
    place: Place,
    bytes_max: u64,
    open: Option<Open>,
    /// This process has had the file open before.
    has_known: bool,
    is_closed: bool,
}

impl Shared {
    pub(crate) fn new(place: Place, bytes_max: u64) -> Self {
        let file = Keeper {
            place,
            bytes_max,
            open: None,
            has_known: false,
            is_closed: false,
        };
        Self {
            waiting: Mutex::default(),
            file: Mutex::new(file),
        }
    }

    /// Waits in line.
    pub(crate) fn put(self: &Arc<Self>, job: Job) -> Result<(), Failure> {
        let mut waiting = self.waiting.lock();
        if waiting.jobs.len() >= JOBS_MAX && !matches!(job, Job::Close(_)) {
            return Err(Failure::Busy);
        }
        waiting.jobs.push(job);
        if !waiting.is_served {
            waiting.is_served = true;
            let shared = Arc::clone(self);
            spawn_blocking(move || shared.serve());
        }
        Ok(())
    }

    /// Takes all that wait, again and again until nobody does.
    fn serve(&self) {
        loop {
            let jobs = {
                let mut waiting = self.waiting.lock();
                if waiting.jobs.is_empty() {
                    waiting.is_served = false;
                    return;
                }
                std::mem::take(&mut waiting.jobs)
            };
            let mut file = self.file.lock();
            // A file that was damaged while it was open may be more than redb bears; who waited is
            // told by the silence.
            if catch_unwind(AssertUnwindSafe(|| file.serve(jobs))).is_err() {
                tracing::error!("what was lent of calls cannot be read; opening it anew");
                file.open = None;
            }
        }
    }
}

impl Keeper {
    fn serve(&mut self, jobs: Vec<Job>) {
        let (mut reads, mut changes, mut closers) = (Vec::new(), Vec::new(), Vec::new());
        for job in jobs {
            match job {
                Job::Read(read) => reads.push(read),
                Job::Change(change) => changes.push(change),
                Job::Close(tell) => closers.push(tell),
            }
        }
        // Whoever only closes needs no file; one that this process has had may be gone, and the
        // next would not know.
        let is_wanted = !reads.is_empty() || !changes.is_empty() || self.has_known;
        if is_wanted && let Err(failure) = self.ensure_open() {
            reads
                .drain(..)
                .for_each(|read| tell(read.tell, Err(failure.clone())));
            changes
                .drain(..)
                .for_each(|change| tell(change.tell, Err(failure.clone())));
        }
        if !reads.is_empty() {
            self.read(reads);
        }
        if !changes.is_empty() {
            self.write(changes);
        }
        if !closers.is_empty() {
            self.is_closed = true;
            self.open = None;
            closers.into_iter().for_each(|closer| tell(closer, ()));
        }
    }

    fn ensure_open(&mut self) -> Result<(), Failure> {
        if self.is_closed {
            return Err(Failure::Closed);
        }
        if self.open.as_ref().is_some_and(|open| !self.place.has(open)) {
            self.open = None;
        }
        if self.open.is_none() {
            self.open = Some(self.place.open(self.has_known)?);
            self.has_known = true;
        }
        Ok(())
    }

    fn read(&mut self, reads: Vec<Read>) {
        let now = self.place.clock.now();
        let result = self.open.as_ref().map(|open| {
            let tables = ReadTables::open(&open.database.begin_read()?)?;
            let load = |name: Option<&Name>| tables.load(name, now, open.identity);
            let loaded = reads.iter().map(|read| load(read.client.as_ref()));
            loaded.collect::<Result<Vec<Loaded>, redb::Error>>()
        });
        match result {
            Some(Ok(loaded)) => {
                let told = reads.into_iter().zip(loaded);
                told.for_each(|(read, loaded)| tell(read.tell, Ok(loaded)));
            }
            Some(Err(error)) => {
                self.open = None;
                let failure = Failure::Disk {
                    doing: "read",
                    source: cause(error),
                };
                reads
                    .into_iter()
                    .for_each(|read| tell(read.tell, Err(failure.clone())));
            }
            None => reads
                .into_iter()
                .for_each(|read| tell(read.tell, Err(Failure::Closed))),
        }
    }

    fn write(&mut self, changes: Vec<Change>) {
        // Opened again where a read has failed in between.
        if let Err(failure) = self.ensure_open() {
            changes
                .into_iter()
                .for_each(|change| tell(change.tell, Err(failure.clone())));
            return;
        }
        let now = self.place.clock.now();
        let Some(open) = self.open.as_mut() else {
            return;
        };
        let setting = Setting {
            identity: open.identity,
            now,
            bytes_max: self.bytes_max,
        };
        match write_all(&open.database, &changes, setting, &mut open.bytes) {
            Ok(outcomes) => {
                let told = changes.into_iter().zip(outcomes);
                told.for_each(|(change, outcome)| tell(change.tell, outcome));
            }
            Err(failure) => {
                // What has reached the disk is seen when it is opened anew.
                self.open = None;
                changes
                    .into_iter()
                    .for_each(|change| tell(change.tell, Err(failure.clone())));
            }
        }
    }
}

/// Tells whoever waits, if it still does.
fn tell<T>(to: oneshot::Sender<T>, what: T) {
    let _ = to.send(what);
}

/// What a read or a write comes to.
pub(crate) async fn told<T>(told: oneshot::Receiver<Result<T, Failure>>) -> Result<T, Failure> {
    let silence = |gone: oneshot::error::RecvError| Failure::Unknown(Arc::new(gone));
    told.await.unwrap_or_else(|gone| Err(silence(gone)))
}
