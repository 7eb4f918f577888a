//! On which thread does a connection live?
//!
//! One thread for each processor, each with a runtime of its own. A connection stays on its thread,
//! and with it its requests and the connections to origins that they make: nothing of it is handed
//! from thread to thread, and nobody is woken on another one. What a request costs that way is
//! written in `docs/explanation/speed.md`.
//!
//! Connections go where the fewest are open. A worker that is busy is not helped by the others:
//! what takes long does not belong into a request.

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

/// How long a thread that ends waits for one that hangs in a disk or in a look-up.
const PATIENCE: Duration = Duration::from_secs(1);

/// Threads for connections; or none, and then each lives where it was accepted.
#[derive(Clone, Debug, Default)]
pub struct Workers {
    workers: Arc<[Worker]>,
}

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    open: Arc<AtomicUsize>,
    /// The thread ends when this is dropped.
    _alive: watch::Sender<()>,
}

/// A worker that was chosen for a connection.
pub(crate) struct Choice {
    pub(crate) runtime: Option<Handle>,
    pub(crate) open: Open,
}

/// Counts a connection on its worker, also after it became a tunnel.
#[derive(Debug, Default)]
pub(crate) struct Open(Option<Arc<AtomicUsize>>);

/// Has nobody choose a worker whose thread has ended, which only a mistake of the runtime's can do.
struct Closed(Arc<AtomicUsize>);

impl Workers {
    /// Starts so many threads. They end when the last clone of this is dropped, with what is still
    /// open on them.
    ///
    /// # Errors
    ///
    /// If the system gives no more threads or file descriptors.
    pub fn start(count: usize) -> Result<Self, IoError> {
        let workers: Result<Vec<Worker>, IoError> = (0..count).map(Worker::start).collect();
        Ok(Self {
            workers: workers?.into(),
        })
    }

    /// The worker for the next connection.
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

/// Lets a connection live on a worker; without one, here.
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
    // Out of the runtime that accepted it, and into the one that serves it.
    let stream = match stream.into_std() {
        Ok(stream) => stream,
        Err(error) => return error!(%error, "could not hand on a connection"),
    };
    worker.spawn(async move {
        match TcpStream::from_std(stream) {
            Ok(stream) => serve(stream).await,
            Err(error) => error!(%error, "could not take over a connection"),
        }
    });
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
                // An error: whoever could say something is gone.
                runtime.block_on(async move { while ended.changed().await.is_ok() {} });
                runtime.shutdown_timeout(PATIENCE);
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
    /// How many connections live on each.
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

    /// A connection on one of the workers until the sender is dropped, and the thread that it lives
    /// on.
    async fn connect(workers: &Workers) -> (oneshot::Sender<()>, ThreadId) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        let ((_, near), (stream, _)) = ((address, near.unwrap()), far.unwrap());
        let (hold, held) = oneshot::channel::<()>();
        let (say, said) = oneshot::channel();
        let Choice { runtime, open } = workers.choose();
        spawn(runtime, stream, async move |stream: TcpStream| {
            let _open = open;
            // It is registered here: an address could be had anywhere.
            stream.writable().await.unwrap();
            say.send(thread::current().id()).unwrap();
            let _ = held.await;
        });
        let lives_on = said.await.unwrap();
        drop(near);
        (hold, lives_on)
    }

    #[tokio::test]
    async fn connections_go_where_the_fewest_are() {
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
    async fn a_worker_whose_thread_has_ended_gets_nobody() {
        let workers = Workers::start(2).unwrap();
        drop(Closed(Arc::clone(&workers.workers[0].open)));
        let ids = [connect(&workers).await, connect(&workers).await];
        assert_eq!(ids[0].1, ids[1].1);
    }

    #[tokio::test]
    async fn without_workers_a_connection_stays_where_it_was_accepted() {
        let (_hold, lives_on) = connect(&Workers::default()).await;
        assert_eq!(lives_on, thread::current().id());
    }

    #[tokio::test]
    async fn what_is_open_ends_with_the_workers() {
        let workers = Workers::start(1).unwrap();
        let (mut hold, _) = connect(&workers).await;
        drop(workers);
        hold.closed().await;
    }
}
