//! Queue of jobs for the file. One blocking thread at a time performs all that wait.
//!
//! Reads get their replies at once, from what has reached the disk. Writes get them together, after
//! they have. A disk that hangs blocks one thread and at most [`JOBS_MAX`] jobs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anteroom_limit_store::lease_store::Loaded;
use parking_lot::Mutex;
use redb::ReadableDatabase as _;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::leases::change::{Change, Read, TransactionParams, write_all};
use crate::leases::failure::{Failure, cause};
use crate::leases::file::{Location, Open};
use crate::leases::tables::{Name, ReadTables};

/// Most jobs that wait: four times as many as the lease layer sends at once. More fail as busy.
const JOBS_MAX: usize = 4_096;

/// Job for the file.
pub(crate) enum Job {
    Read(Read),
    Change(Change),
    Close(oneshot::Sender<()>),
}

/// File, and the jobs that wait for it.
pub(crate) struct Shared {
    waiting: Mutex<Waiting>,
    file: Mutex<FileWorker>,
}

#[derive(Default)]
struct Waiting {
    jobs: Vec<Job>,
    /// Whether a thread performs the jobs.
    is_served: bool,
}

/// State of the thread that performs jobs.
struct FileWorker {
    location: Location,
    bytes_max: u64,
    open: Option<Open>,
    /// Whether this process has opened the file before.
    has_known: bool,
    is_closed: bool,
}

impl Shared {
    pub(crate) fn new(location: Location, bytes_max: u64) -> Self {
        let file = FileWorker {
            location,
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

    /// Adds a job to the queue.
    pub(crate) fn push(self: &Arc<Self>, job: Job) -> Result<(), Failure> {
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

    /// Performs all jobs, until none is left.
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
            // redb may panic if the file was damaged while it was open. The dropped senders then
            // report an error to the waiting requests.
            if catch_unwind(AssertUnwindSafe(|| file.serve(jobs))).is_err() {
                tracing::error!("lease file unreadable: opening it again");
                file.open = None;
            }
        }
    }
}

impl FileWorker {
    fn serve(&mut self, jobs: Vec<Job>) {
        let (mut reads, mut changes, mut closers) = (Vec::new(), Vec::new(), Vec::new());
        for job in jobs {
            match job {
                Job::Read(read) => reads.push(read),
                Job::Change(change) => changes.push(change),
                Job::Close(reply) => closers.push(reply),
            }
        }
        // A close alone needs no file. But a file that this process has had may be deleted, and the
        // next process must learn of the loss.
        let is_wanted = !reads.is_empty() || !changes.is_empty() || self.has_known;
        if is_wanted && let Err(failure) = self.ensure_open() {
            reads
                .drain(..)
                .for_each(|read| send(read.reply, Err(failure.clone())));
            changes
                .drain(..)
                .for_each(|change| send(change.reply, Err(failure.clone())));
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
            closers.into_iter().for_each(|closer| send(closer, ()));
        }
    }

    fn ensure_open(&mut self) -> Result<(), Failure> {
        if self.is_closed {
            return Err(Failure::Closed);
        }
        if self
            .open
            .as_ref()
            .is_some_and(|open| !self.location.is_current(open))
        {
            self.open = None;
        }
        if self.open.is_none() {
            self.open = Some(self.location.open(self.has_known)?);
            self.has_known = true;
        }
        Ok(())
    }

    fn read(&mut self, reads: Vec<Read>) {
        let now = self.location.clock.now();
        let result = self.open.as_ref().map(|open| {
            let tables = ReadTables::open(&open.database.begin_read()?)?;
            let load = |name: Option<&Name>| tables.load(name, now, open.identity);
            let loaded = reads.iter().map(|read| load(read.client.as_ref()));
            loaded.collect::<Result<Vec<Loaded>, redb::Error>>()
        });
        match result {
            Some(Ok(loaded)) => {
                let replies = reads.into_iter().zip(loaded);
                replies.for_each(|(read, loaded)| send(read.reply, Ok(loaded)));
            }
            Some(Err(error)) => {
                self.open = None;
                let failure = Failure::Disk {
                    doing: "read",
                    source: cause(error),
                };
                reads
                    .into_iter()
                    .for_each(|read| send(read.reply, Err(failure.clone())));
            }
            None => reads
                .into_iter()
                .for_each(|read| send(read.reply, Err(Failure::Closed))),
        }
    }

    fn write(&mut self, changes: Vec<Change>) {
        // A failed read closes the file.
        if let Err(failure) = self.ensure_open() {
            changes
                .into_iter()
                .for_each(|change| send(change.reply, Err(failure.clone())));
            return;
        }
        let now = self.location.clock.now();
        let Some(open) = self.open.as_mut() else {
            return;
        };
        let params = TransactionParams {
            identity: open.identity,
            now,
            bytes_max: self.bytes_max,
        };
        match write_all(&open.database, &changes, params, &mut open.bytes) {
            Ok(outcomes) => {
                let replies = changes.into_iter().zip(outcomes);
                replies.for_each(|(change, outcome)| send(change.reply, outcome));
            }
            Err(failure) => {
                // The next opening shows what has reached the disk.
                self.open = None;
                changes
                    .into_iter()
                    .for_each(|change| send(change.reply, Err(failure.clone())));
            }
        }
    }
}

/// Sends a reply, if its request still waits.
fn send<T>(to: oneshot::Sender<T>, reply: T) {
    let _ = to.send(reply);
}

/// Waits for the reply to a read or a write.
pub(crate) async fn reply_of<T>(
    reply: oneshot::Receiver<Result<T, Failure>>,
) -> Result<T, Failure> {
    let dropped = |error: oneshot::error::RecvError| Failure::Unknown(Arc::new(error));
    reply.await.unwrap_or_else(|error| Err(dropped(error)))
}
