//! How do connections come in, how many at once, and how do they end?
//!
//! An accept loop per listener. Several loops, on one runtime or on many, may share one
//! [`ConnectionCap`] and one drain signal. Requests are checked by [`Intake`] and handed to a
//! service; what it does with them is not known here. TLS is ended by whoever stands in front.

mod drain;
mod intake;
mod io;

use std::convert::Infallible;
use std::io::Error as IoError;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{SizeLimits, TimeOuts};
use http::{Request, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{debug, warn};

use crate::body::Body;
use crate::forwarded::TrustedProxies;
use crate::proxy::wait_of;

pub use drain::{DrainSignal, DrainTrigger, drain};
pub use intake::Intake;
use io::TimedIo;

/// Connections that wait in the kernel to be accepted. The kernel lowers it to `somaxconn`.
const BACKLOG: u32 = 4096;

/// Pause after a failed accept, doubled up to [`PAUSE_MAX`]. Without one, a process out of file
/// descriptors spins: the connection stays in the queue and accept fails again at once.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The longest pause; longer, and service comes back late once descriptors are free.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The smallest buffer that hyper works with.
const BUFFER_MIN: usize = 8192;

/// Headers that hyper parses without an allocation.
const HEADERS_CHEAP: usize = 100;

/// Is told what happens to connections, to count it.
pub trait ConnectionObserver: Send + Sync {
    /// A connection was accepted.
    fn opened(&self) {}
    /// A connection, or the tunnel that it became, ended.
    fn closed(&self) {}
    /// The cap is reached: nothing is accepted until a connection ends.
    fn accept_paused(&self) {}
    /// Accepting failed, with most likely too many files open.
    fn accept_failed(&self, _error: &IoError) {}
}

/// An observer that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl ConnectionObserver for Unobserved {}

/// How many connections there may be at once, over all listeners that share it.
///
/// Each accept loop keeps one of them in hand for whoever comes next, so the cap should be well
/// above the number of loops.
#[derive(Clone, Debug)]
pub struct ConnectionCap {
    permits: Arc<Semaphore>,
    connections: u32,
}

impl ConnectionCap {
    /// A cap of `connections`, at least 1.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let connections = u32::try_from(connections).unwrap_or(most).clamp(1, most);
        let permits = usize::try_from(connections).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            connections,
        }
    }

    /// Waits until no connection is left.
    async fn all_free(&self) {
        // The semaphore is never closed.
        let all = self.permits.acquire_many(self.connections).await;
        drop(all);
    }
}

/// Keeps a connection counted, and tells when it must end; for what outlives the HTTP on it.
#[derive(Clone)]
pub struct ConnectionHold {
    signal: DrainSignal,
    _counted: Arc<Counted>,
}

impl ConnectionHold {
    /// Tells when draining starts; does not hold the connection.
    pub(crate) fn signal(&self) -> DrainSignal {
        self.signal.clone()
    }

    /// Resolves when draining has taken too long.
    pub(crate) async fn cut(&self) {
        self.signal.clone().cut().await;
    }
}

struct Counted {
    _permit: OwnedSemaphorePermit,
    observer: Arc<dyn ConnectionObserver>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.observer.closed();
    }
}

/// What all connections of a listener have in common.
#[derive(Clone)]
pub struct Server {
    http: http1::Builder,
    intake: Arc<Intake>,
    cap: ConnectionCap,
    write_idle: Duration,
    drain_wait: Duration,
    observer: Arc<dyn ConnectionObserver>,
}

impl Server {
    /// Sets up connections after the config.
    #[must_use]
    pub fn new(
        time_outs: &TimeOuts,
        sizes: &SizeLimits,
        trusted: TrustedProxies,
        cap: ConnectionCap,
        observer: Arc<dyn ConnectionObserver>,
    ) -> Self {
        // Not `pipeline_flush`: with it, hyper 1 buffers without bound for a client that does not
        // read, and loses the last answer of a connection that closes with requests unread.
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(wait_of(time_outs.request_head))
            .half_close(true)
            .max_header_size(sizes.request_head_bytes)
            .max_buf_size(sizes.request_head_bytes.max(BUFFER_MIN));
        if sizes.request_headers > HEADERS_CHEAP {
            http.max_headers(sizes.request_headers);
        }
        let body_idle = wait_of(time_outs.body_idle);
        Self {
            http,
            intake: Arc::new(Intake::new(sizes, body_idle, trusted)),
            cap,
            write_idle: body_idle,
            drain_wait: wait_of(time_outs.drain),
            observer,
        }
    }

    /// Accepts connections until `signal` says to drain, then waits until all have ended, at most
    /// for the drain time-out; what is open then is cut.
    ///
    /// Connections of loops that share the [`ConnectionCap`] are waited for together.
    pub async fn serve<S>(self, listener: TcpListener, service: S, signal: DrainSignal)
    where
        S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
    {
        tokio::select! {
            () = self.accept_all(&listener, service, &signal) => {}
            () = signal.clone().started() => {}
        }
        // Whoever waits in the queue of the kernel is refused, instead of left hanging.
        drop(listener);
        if tokio::time::timeout(self.drain_wait, self.cap.all_free())
            .await
            .is_err()
        {
            warn!("connections were still open at the end of draining");
            signal.cut_now();
        }
    }

    async fn accept_all<S>(&self, listener: &TcpListener, service: S, signal: &DrainSignal)
    where
        S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
    {
        let mut pause = PAUSE_MIN;
        loop {
            let Some(permit) = self.permit().await else {
                return;
            };
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.observer.accept_failed(&error);
                    if !concerns_one_connection(&error) {
                        warn!(%error, "could not accept a connection");
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                    continue;
                }
            };
            pause = PAUSE_MIN;
            self.observer.opened();
            let counted = Arc::new(Counted {
                _permit: permit,
                observer: Arc::clone(&self.observer),
            });
            let hold = ConnectionHold {
                signal: signal.clone(),
                _counted: counted,
            };
            self.spawn(stream, peer, service.clone(), hold);
        }
    }

    /// Waits until there may be one more connection.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.cap.permits).try_acquire_owned() {
            return Some(permit);
        }
        self.observer.accept_paused();
        Arc::clone(&self.cap.permits).acquire_owned().await.ok()
    }

    fn spawn<S>(&self, stream: TcpStream, peer: SocketAddr, service: S, hold: ConnectionHold)
    where
        S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
    {
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "could not set TCP_NODELAY");
        }
        let signal = hold.signal.clone();
        let service = intake::Checked::new(Arc::clone(&self.intake), peer, hold, service);
        let stream = TokioIo::new(TimedIo::new(stream, self.write_idle));
        let connection = self.http.serve_connection(stream, service).with_upgrades();
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                biased;
                ended = connection.as_mut() => Some(ended),
                () = drain::Quietly::new(signal.clone().started()) => None,
            };
            let ended = match ended {
                Some(ended) => ended,
                None => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        biased;
                        ended = connection => ended,
                        () = signal.cut() => return,
                    }
                }
            };
            if let Err(error) = ended {
                debug!(error = &error as &dyn std::error::Error, "connection broke");
            }
        });
    }
}

/// Whether an accept error says nothing about the next connection.
fn concerns_one_connection(error: &IoError) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// Opens a listener. With `is_shared`, several may listen on one address (`SO_REUSEPORT`), and the
/// kernel spreads connections over them.
///
/// # Errors
///
/// What the operating system says: the address is taken, or not ours.
pub fn listen(address: SocketAddr, is_shared: bool) -> Result<TcpListener, IoError> {
    let socket = if address.is_ipv6() {
        TcpSocket::new_v6()?
    } else {
        TcpSocket::new_v4()?
    };
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    if is_shared {
        socket.set_reuseport(true)?;
    }
    #[cfg(not(unix))]
    let _ = is_shared;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_next_connection_too_make_accepting_pause() {
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

    #[test]
    fn a_cap_is_at_least_one_and_at_most_what_can_be_counted() {
        assert_eq!(ConnectionCap::new(0).connections, 1);
        assert_eq!(ConnectionCap::new(7).permits.available_permits(), 7);
        assert!(ConnectionCap::new(usize::MAX).connections > 1_000_000);
    }
}
