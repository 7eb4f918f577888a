//! Accepting of connections, and the settings that they share.
//!
//! One accept loop per listener. Several loops, on one runtime or on many, may share one
//! [`ConnectionTable`] and one drain signal.

use std::io::Error as IoError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{SizeLimits, Timeouts};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tracing::{debug, warn};

use crate::downstream::connection::{self, Protocols};
use crate::downstream::connection_table::ConnectionTable;
use crate::downstream::drain::DrainSignal;
use crate::downstream::hold::ConnectionHold;
use crate::downstream::observer::ConnectionObserver;
use crate::downstream::tls::Tls;
use crate::downstream::workers::{self, Choice, Workers};
use crate::downstream::{Arrival, Handler};
use crate::timeouts::wait_of;

/// Pause after a failed accept, doubled up to [`PAUSE_MAX`]. Without one, a process without free
/// file descriptors spins: the connection stays in the queue and accept fails again at once.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// Longest pause. With a longer one, service resumes late once descriptors are free.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Server of a listener: settings that its connections share.
#[derive(Clone)]
pub struct Server {
    protocols: Arc<Protocols>,
    tls: Option<Tls>,
    table: ConnectionTable,
    drain_wait: Duration,
    observer: Arc<dyn ConnectionObserver>,
    workers: Workers,
}

impl Server {
    /// Creates a server of unencrypted connections by the config.
    #[must_use]
    pub fn new(
        timeouts: &Timeouts,
        sizes: &SizeLimits,
        table: ConnectionTable,
        observer: Arc<dyn ConnectionObserver>,
    ) -> Self {
        Self {
            protocols: Arc::new(Protocols::new(timeouts, sizes)),
            tls: None,
            table,
            drain_wait: wait_of(timeouts.drain),
            observer,
            workers: Workers::default(),
        }
    }

    /// Serves connections on these threads instead of where they are accepted.
    #[must_use]
    pub fn on(self, workers: Workers) -> Self {
        Self { workers, ..self }
    }

    /// Serves connections over TLS, if it is configured.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }

    /// Accepts connections until `signal` starts the drain, then waits until all have ended, at
    /// most for the drain timeout. Connections that are open then are aborted.
    ///
    /// Connections of loops that share the [`ConnectionTable`] are waited for together.
    pub async fn serve<H: Handler>(self, listener: TcpListener, handler: H, signal: DrainSignal) {
        tokio::select! {
            () = self.accept_all(&listener, handler, &signal) => {}
            () = signal.clone().leaving() => {}
        }
        // Connections in the kernel's queue are refused, instead of left hanging, or accepted by
        // another process with this socket.
        drop(listener);
        tokio::select! {
            () = self.table.all_free() => return,
            () = signal.clone().started() => {}
        }
        if tokio::time::timeout(self.drain_wait, self.table.all_free())
            .await
            .is_err()
        {
            warn!("connections were still open at the end of draining");
            signal.cut_now();
        }
    }

    async fn accept_all<H: Handler>(
        &self,
        listener: &TcpListener,
        handler: H,
        signal: &DrainSignal,
    ) {
        let mut pause = PAUSE_MIN;
        loop {
            self.table.accept_ready(&*self.observer).await;
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.observer.accept_failed(&error);
                    if !concerns_one_connection(&error) {
                        warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                    continue;
                }
            };
            pause = PAUSE_MIN;
            let Choice { runtime, open } = self.workers.choose();
            let slot = self.table.admit(peer, &*self.observer);
            let hold = ConnectionHold::new(slot, &self.observer, signal.clone(), open);
            self.spawn(runtime, stream, (peer, hold), handler.clone());
        }
    }

    fn spawn<H: Handler>(
        &self,
        worker: Option<Handle>,
        stream: TcpStream,
        (peer, hold): (SocketAddr, ConnectionHold),
        handler: H,
    ) {
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "cannot set TCP_NODELAY");
        }
        let arrival = Arrival {
            peer,
            is_encrypted: false,
            hold,
        };
        let protocols = Arc::clone(&self.protocols);
        let tls = self.tls.clone();
        workers::spawn(worker, stream, move |stream| {
            connection::serve(stream, protocols, tls, handler, arrival)
        });
    }
}

/// Whether an accept error concerns one connection only, and not the next one.
fn concerns_one_connection(error: &IoError) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_that_repeat_pause_accepting() {
        let check = |code, expected| {
            let error = IoError::from_raw_os_error(code);
            assert_eq!(concerns_one_connection(&error), expected, "{error}");
        };
        // Linux: ECONNABORTED, EINTR; EMFILE, ENFILE, ENOMEM.
        check(103, true);
        check(4, true);
        check(24, false);
        check(23, false);
        check(12, false);
    }
}
