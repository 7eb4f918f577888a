//! Threads that serve connections.
//!
//! One thread per processor, each with its own runtime. A connection stays on its thread, with its
//! requests and their connections to origins: nothing moves between threads, and no wake-up crosses
//! them. `docs/explanation/speed.md` has the costs.
//!
//! A new connection goes to the worker with the fewest. Workers do not help each other: long
//! computations do not belong into a request.

use std::future::Future;
use std::io::Error as IoError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tracing::error;

/// Time that a worker waits at its end for a blocked disk access or look-up.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Threads for connections. Without any, each connection runs where it was accepted.
#[derive(Clone, Debug, Default)]
pub struct Workers {
    workers: Arc<[Worker]>,
}

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    open: Arc<AtomicUsize>,
    /// Dropping it ends the thread.
    _alive: watch::Sender<()>,
}

/// Worker that was chosen for a connection.
pub(crate) struct Choice {
    pub(crate) runtime: Option<Handle>,
    pub(crate) open: Open,
}

/// Count of a connection on its worker, even after it became a tunnel.
#[derive(Debug, Default)]
pub(crate) struct Open(Option<Arc<AtomicUsize>>);

/// Excludes a worker from the choice whose thread has ended, which only a defect of the runtime can
/// cause.
struct Closed(Arc<AtomicUsize>);

impl Workers {
    /// Starts `count` threads. They end when the last clone is dropped, with all that is still open
    /// on them.
    ///
    /// # Errors
    ///
    /// If the system has no more threads or file descriptors.
    pub fn start(count: usize) -> Result<Self, IoError> {
        let workers: Result<Vec<Worker>, IoError> = (0..count).map(Worker::start).collect();
        Ok(Self {
            workers: workers?.into(),
        })
    }

    /// Chooses the worker for the next connection.
    pub(crate) fn choose(&self) -> Choice {
        let worker = self
            .workers
            .iter()
            .min_by_key(|worker| worker.open.load(Relaxed));
        Choice {
            runtime: worker.map(|worker| worker.runtime.clone()),
            open: worker.map(Open::on).unwrap_or_default(),
        }
    }
}

/// Runs a connection on a worker; without one, on the present runtime.
pub(crate) fn spawn<F>(
    worker: Option<Handle>,
    stream: TcpStream,
    serve: impl FnOnce(TcpStream) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let Some(worker) = worker else {
        tokio::spawn(serve(stream));
        return;
    };
    // Moves the socket from the runtime that accepted it to the one that serves it.
    let stream = match stream.into_std() {
        Ok(stream) => stream,
        Err(error) => return error!(%error, "cannot pass a connection to its worker"),
    };
    // Registered here and not in the task, which would keep room for all that makes its future.
    let entered = worker.enter();
    let registered = TcpStream::from_std(stream).map(serve);
    drop(entered);
    match registered {
        Ok(served) => drop(worker.spawn(served)),
        Err(error) => error!(%error, "cannot register a connection at its worker"),
    }
}

impl Worker {
    fn start(number: usize) -> Result<Self, IoError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, mut ended) = watch::channel(());
        let open = Arc::<AtomicUsize>::default();
        let closed = Closed(Arc::clone(&open));
        thread::Builder::new()
            .name(format!("visitors-{number}"))
            .spawn(move || {
                let _closed = closed;
                // `changed` fails once the sender is dropped.
                runtime.block_on(async move { while ended.changed().await.is_ok() {} });
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            })?;
        Ok(Self {
            runtime: handle,
            open,
            _alive: alive,
        })
    }
}

impl Open {
    fn on(worker: &Worker) -> Self {
        worker.open.fetch_add(1, Relaxed);
        Self(Some(Arc::clone(&worker.open)))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            open.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.fetch_add(usize::MAX / 2, Relaxed);
    }
}

#[cfg(test)]
impl Workers {
    /// Returns the number of connections per worker.
    pub(crate) fn open(&self) -> Vec<usize> {
        let open = self.workers.iter().map(|worker| worker.open.load(Relaxed));
        open.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::thread::ThreadId;

    use tokio::net::TcpListener;
    use tokio::sync::oneshot;

    use super::*;

    /// Runs a connection on one of the workers until the sender is dropped; returns its thread.
    async fn connect(workers: &Workers) -> (oneshot::Sender<()>, ThreadId) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        let ((_, near), (stream, _)) = ((address, near.unwrap()), far.unwrap());
        let (hold, dropped) = oneshot::channel::<()>();
        let (sender, receiver) = oneshot::channel();
        let Choice { runtime, open } = workers.choose();
        spawn(runtime, stream, async move |stream: TcpStream| {
            let _open = open;
            // Proves that the socket is registered here: its address is known anywhere.
            stream.writable().await.unwrap();
            sender.send(thread::current().id()).unwrap();
            let _ = dropped.await;
        });
        let thread = receiver.await.unwrap();
        drop(near);
        (hold, thread)
    }

    #[tokio::test]
    async fn a_connection_goes_to_the_worker_with_the_fewest() {
        let workers = Workers::start(2).unwrap();
        let (first, one) = connect(&workers).await;
        let (second, other) = connect(&workers).await;
        assert_ne!(one, other);
        assert_ne!(one, thread::current().id());
        assert_eq!(workers.open(), [1, 1]);
        drop(first);
        while !workers.open().contains(&0) {
            tokio::task::yield_now().await;
        }
        let (_third, again) = connect(&workers).await;
        assert_eq!(again, one);
        drop(second);
    }

    #[tokio::test]
    async fn an_ended_worker_gets_no_connections() {
        let workers = Workers::start(2).unwrap();
        drop(Closed(Arc::clone(&workers.workers[0].open)));
        let ids = [connect(&workers).await, connect(&workers).await];
        assert_eq!(ids[0].1, ids[1].1);
    }

    #[tokio::test]
    async fn without_workers_a_connection_stays_where_it_was_accepted() {
        let (_hold, thread) = connect(&Workers::default()).await;
        assert_eq!(thread, thread::current().id());
    }

    #[tokio::test]
    async fn open_connections_end_with_the_workers() {
        let workers = Workers::start(1).unwrap();
        let (mut hold, _) = connect(&workers).await;
        drop(workers);
        hold.closed().await;
    }
}
