//! How do connections come in, and what holds for each of them?
//!
//! An accept loop per listener. Several loops, on one runtime or on many, may share one
//! [`ConnectionTable`] and one drain signal.

use std::io::Error as IoError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{SizeLimits, TimeOuts};
use anteroom_room::time::Span;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tracing::{debug, warn};

use crate::downstream::connection::{self, Http2, PING_WAIT};
use crate::downstream::drain::DrainSignal;
use crate::downstream::hold::{ConnectionHold, ConnectionObserver};
use crate::downstream::lanes::{self, Choice, Lanes};
use crate::downstream::pace::Pace;
use crate::downstream::screened::Patience;
use crate::downstream::stall::StreamExecutor;
use crate::downstream::table::ConnectionTable;
use crate::downstream::tls::Tls;
use crate::downstream::{Arrival, Handler};

/// Pause after a failed accept, doubled up to [`PAUSE_MAX`]. Without one, a process out of file
/// descriptors spins: the connection stays in the queue and accept fails again at once.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The longest pause; longer, and service comes back late once descriptors are free.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The longest time that is waited for anything: longer spans overflow timers and mean "for ever".
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The smallest buffer that hyper works with.
const BUFFER_MIN: usize = 8192;

/// Headers that hyper parses without an allocation.
const HEADERS_CHEAP: usize = 100;

/// What one request's body may bring before somebody reads it. Enough for 2 MB/s at 100 ms; each
/// stream of each connection may take so much memory.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all streams of a connection together.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What waits to be sent, of one answer. hyper's own figure (400 KiB) times the streams of a
/// connection is what one client that does not read could cost.
const SEND_BUFFER: usize = 64 * 1024;
/// Streams that a client opened and took back before anybody looked at them; more than so many end
/// the connection ("rapid reset").
const RESETS_MAX: usize = 20;
/// Streams that we reset because of the client's mistakes; more than so many end the connection.
const MISTAKES_MAX: usize = 100;

/// What holds for every connection of a listener.
pub(crate) struct Protocols {
    pub(crate) http1: http1::Builder,
    head_bytes: u32,
    http2_streams: u32,
    pub(crate) patience: Patience,
    pub(crate) pace: Pace,
    pub(crate) write_idle: Duration,
    pub(crate) requests_max: u64,
}

impl Protocols {
    pub(crate) fn new(time_outs: &TimeOuts, sizes: &SizeLimits) -> Self {
        // Not `pipeline_flush`: with it, hyper 1 buffers without bound for a client that does not
        // read, and loses the last answer of a connection that closes with requests unread.
        let mut http1 = http1::Builder::new();
        // Time-outs of heads are kept by `Screened`; hyper's own does not tell a head that is slow
        // from a connection that is kept open.
        http1
            .header_read_timeout(None)
            .half_close(true)
            .max_header_size(sizes.request_head_bytes)
            .max_buf_size(sizes.request_head_bytes.max(BUFFER_MIN));
        if sizes.request_headers > HEADERS_CHEAP {
            http1.max_headers(sizes.request_headers);
        }
        Self {
            http1,
            head_bytes: u32::try_from(sizes.request_head_bytes).unwrap_or(u32::MAX),
            http2_streams: sizes.http2_streams,
            patience: Patience {
                head: wait_of(time_outs.request_head),
                keep_alive: wait_of(time_outs.keep_alive),
            },
            pace: Pace::new(sizes.body_bytes_per_second_min),
            write_idle: wait_of(time_outs.body_idle),
            requests_max: sizes.requests_per_connection,
        }
    }

    /// What begins HTTP/2 on a connection whose streams this executor runs.
    pub(crate) fn http2(&self, streams: StreamExecutor) -> Http2 {
        let mut http2 = Http2::new(streams);
        // Extended CONNECT stays off: upgrades are a matter of HTTP/1.1.
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.http2_streams)
            .max_header_list_size(self.head_bytes)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_pending_accept_reset_streams(RESETS_MAX)
            .max_local_error_reset_streams(MISTAKES_MAX)
            .keep_alive_interval(PING_WAIT)
            .keep_alive_timeout(PING_WAIT);
        http2
    }
}

/// What all connections of a listener have in common.
#[derive(Clone)]
pub struct Server {
    protocols: Arc<Protocols>,
    tls: Option<Tls>,
    table: ConnectionTable,
    drain_wait: Duration,
    observer: Arc<dyn ConnectionObserver>,
    lanes: Lanes,
}

impl Server {
    /// Sets up connections after the config; in the clear.
    #[must_use]
    pub fn new(
        time_outs: &TimeOuts,
        sizes: &SizeLimits,
        table: ConnectionTable,
        observer: Arc<dyn ConnectionObserver>,
    ) -> Self {
        Self {
            protocols: Arc::new(Protocols::new(time_outs, sizes)),
            tls: None,
            table,
            drain_wait: wait_of(time_outs.drain),
            observer,
            lanes: Lanes::default(),
        }
    }

    /// The same, with connections on these threads and not where they are accepted.
    #[must_use]
    pub fn on(self, lanes: Lanes) -> Self {
        Self { lanes, ..self }
    }

    /// The same, encrypted.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }

    /// Accepts connections until `signal` says to drain, then waits until all have ended, at most
    /// for the drain time-out; what is open then is cut.
    ///
    /// Connections of loops that share the [`ConnectionTable`] are waited for together.
    pub async fn serve<H: Handler>(self, listener: TcpListener, handler: H, signal: DrainSignal) {
        tokio::select! {
            () = self.accept_all(&listener, handler, &signal) => {}
            () = signal.clone().leaving() => {}
        }
        // Whoever waits in the queue of the kernel is refused, instead of left hanging; or is taken
        // by whoever else has this socket.
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
                        warn!(%error, "could not accept a connection");
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                    continue;
                }
            };
            pause = PAUSE_MIN;
            let Choice { runtime, open } = self.lanes.choose();
            let place = self.table.admit(peer, &*self.observer);
            let hold = ConnectionHold::new(place, &self.observer, signal.clone(), open);
            self.spawn(runtime, stream, (peer, hold), handler.clone());
        }
    }

    fn spawn<H: Handler>(
        &self,
        lane: Option<Handle>,
        stream: TcpStream,
        (peer, hold): (SocketAddr, ConnectionHold),
        handler: H,
    ) {
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "could not set TCP_NODELAY");
        }
        let arrival = Arrival {
            peer,
            is_encrypted: false,
            hold,
        };
        let protocols = Arc::clone(&self.protocols);
        let tls = self.tls.clone();
        lanes::spawn(lane, stream, move |stream| {
            connection::serve(stream, protocols, tls, handler, arrival)
        });
    }
}

/// A configured span as a timer takes it.
fn wait_of(span: Span) -> Duration {
    Duration::from_millis(span.0).min(WAIT_MAX)
}

/// Whether an accept error says nothing about the next connection.
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
}
