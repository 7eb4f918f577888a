//! HTTP/2 connections to one origin; each carries many requests at once.
//!
//! What is buffered is bounded: an answer that nobody reads holds [`STREAM_WINDOW`] bytes, and a
//! connection's window is so large that all its answers may be held without stopping one that is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::debug;

use crate::connect::{ConnectError, Stream};
use crate::pool::{Limits, RequestBody};

/// Bytes of one answer that may be on their way without having been read. At a round trip of 5 ms
/// to the origin it allows 50 MB/s for each request.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Requests at once on one connection; one more opens another. What RFC 9113 advises servers to allow
/// at least.
const STREAMS_MAX: usize = 100;
/// Of a whole connection: see [`STREAM_WINDOW`]. A slow visitor must not hold up others.
#[expect(clippy::cast_possible_truncation, reason = "100 fits")]
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_MAX as u32;
/// Bytes of one upload that may wait for the origin.
const SEND_BUFFER: usize = 256 * 1024;
/// How often a connection with requests on it is asked whether it is still there, and how long it
/// may take to say so. Without it, an origin that lost its power is noticed after minutes.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WAIT: Duration = Duration::from_secs(10);

/// All connections to one origin.
#[derive(Debug)]
pub(crate) struct Lines<B> {
    lines: Mutex<Vec<Line<B>>>,
}

#[derive(Debug)]
pub(crate) struct Line<B> {
    pub(crate) sender: SendRequest<B>,
    made_at: Instant,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    streams: AtomicUsize,
    has_answered: AtomicBool,
}

impl<B> Clone for Line<B> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            made_at: self.made_at,
            shared: Arc::clone(&self.shared),
        }
    }
}

/// A request's place on a connection, until its answer has been read.
#[derive(Debug)]
pub(crate) struct StreamHold(Arc<Shared>);

impl Drop for StreamHold {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Relaxed);
    }
}

impl<B> Line<B> {
    /// Whether an answer came over it before.
    pub(crate) fn has_answered(&self) -> bool {
        self.shared.has_answered.load(Relaxed)
    }

    pub(crate) fn note_answer(&self) {
        self.shared.has_answered.store(true, Relaxed);
    }

    pub(crate) fn hold(&self) -> StreamHold {
        self.shared.streams.fetch_add(1, Relaxed);
        StreamHold(Arc::clone(&self.shared))
    }
}

impl<B: RequestBody> Lines<B> {
    pub(crate) const fn new() -> Self {
        Self {
            lines: Mutex::new(Vec::new()),
        }
    }

    /// A connection that bears one more request; made after a moment, if one is given: many whose
    /// connection broke share the next one.
    pub(crate) fn take(&self, made_after: Option<Instant>) -> Option<Line<B>> {
        let mut lines = self.lines.lock();
        lines.retain(|line| !line.sender.is_closed());
        let mut free = lines.iter().filter(|line| Some(line.made_at) > made_after);
        free.find(|line| line.shared.streams.load(Relaxed) < STREAMS_MAX)
            .cloned()
    }

    pub(crate) fn put(&self, sender: SendRequest<B>) -> Line<B> {
        let line = Line {
            sender,
            made_at: Instant::now(),
            shared: Arc::default(),
        };
        self.lines.lock().push(line.clone());
        line
    }

    /// Uses a connection no more for new requests.
    pub(crate) fn remove(&self, line: &Line<B>) {
        let mut lines = self.lines.lock();
        lines.retain(|known| !Arc::ptr_eq(&known.shared, &line.shared));
    }
}

/// Begins HTTP/2 on a connection.
pub(crate) async fn begin<B: RequestBody>(
    stream: impl Stream,
    limits: &Limits,
) -> Result<SendRequest<B>, ConnectError> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WAIT);
    let begun = http.handshake(TokioIo::new(stream)).await;
    let (sender, connection) = begun.map_err(ConnectError::Http)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            debug!(
                error = &error as &dyn std::error::Error,
                "a connection to an origin ended"
            );
        }
    });
    Ok(sender)
}
