//! HTTP/2 connections to one origin; each carries many requests at once.
//!
//! A connection is used only by the runtime on which its task runs. Sharing one across runtimes
//! wakes a thread twice for each request, and all threads would wait for the one that moves its
//! bytes. So each runtime has as many as its own requests need: at most one more per runtime than
//! with sharing.
//!
//! Buffers are bounded: an unread response holds [`STREAM_WINDOW`] bytes. A connection's window is
//! so large that all its responses may be unread without stopping one that is read.

use std::collections::HashMap;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::runtime::{self, Handle};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::task;
use tokio::time::Instant;
use tracing::debug;

use crate::upstream::connect::{ConnectError, Stream};
use crate::upstream::failure::Closing;
use crate::upstream::limits::Limits;
use crate::upstream::open_connections::{Kept, look_after};
use crate::upstream::request::{RequestBody, SendOptions};

/// Bytes of one response that may be in flight and unread. At a round trip of 5 ms to the origin it
/// allows 50 MB/s for each request.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Maximum concurrent requests on one connection, or fewer if the origin allows fewer; one more
/// opens another. RFC 9113 advises servers to allow at least this.
const STREAMS_MAX: usize = 100;
/// Window of a whole connection, see [`STREAM_WINDOW`]. A slow visitor must not hold up others.
#[expect(clippy::cast_possible_truncation, reason = "100 fits")]
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_MAX as u32;
/// Bytes of one upload that may wait for the origin.
const SEND_BUFFER: usize = 256 * 1024;
/// Concurrent requests on a connection whose origin has not sent its settings yet. The others wait
/// for the settings, which are its first frame, so that none is refused for exceeding them.
const STREAMS_BEFORE_SETTINGS: usize = 1;
/// Interval of pings on a connection with open requests and no traffic, and timeout of their
/// replies. Without pings, an origin that lost its power is noticed after minutes; with them, after
/// ten seconds. A ping costs 17 bytes.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_WAIT: Duration = Duration::from_secs(5);
/// Time in which refused requests of one connection are one event. An origin that is full for a
/// moment refuses many at once, which must not count as many failures in a row. One that refuses
/// all is noticed after a few of these.
const REFUSALS_FOR: Duration = Duration::from_secs(1);

/// HTTP/2 connections to one origin.
#[derive(Debug)]
pub(crate) struct Http2Connections<B> {
    /// Idle timeout of a connection.
    keep: Duration,
    kept: Mutex<Kept<Http2Connection<B>>>,
    /// Lock per runtime, held while a connection is made that its other requests may share.
    connecting: Mutex<HashMap<runtime::Id, Arc<AsyncMutex<()>>>>,
}

#[derive(Debug)]
pub(crate) struct Http2Connection<B> {
    pub(crate) sender: SendRequest<B>,
    made_at: Instant,
    /// Task that moves the bytes; it identifies the connection.
    pub(crate) task: task::Id,
    /// Runtime of the task.
    runtime: runtime::Id,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    usage: Mutex<Usage>,
    /// Maximum concurrent requests, by the origin's settings and our own limit.
    streams_max: AtomicUsize,
    has_responded: AtomicBool,
    has_failed: AtomicBool,
    /// Time of the last refusal that counted as an event.
    refused_at: Mutex<Option<Instant>>,
    /// Waker of the connection's task, which alone learns the origin's settings (hyper 1.12,
    /// `Connection::current_max_send_streams`).
    task: AtomicWaker,
}

#[derive(Debug)]
struct Usage {
    streams: usize,
    /// Start of the idle time; valid without streams.
    free_since: Instant,
}

impl<B> Clone for Http2Connection<B> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            made_at: self.made_at,
            task: self.task,
            runtime: self.runtime,
            shared: Arc::clone(&self.shared),
        }
    }
}

/// Stream of a request on a connection, until its response is read.
#[derive(Debug)]
pub(crate) struct StreamHold(Arc<Shared>);

impl Drop for StreamHold {
    fn drop(&mut self) {
        let mut usage = self.0.usage.lock();
        usage.streams -= 1;
        if usage.streams == 0 {
            usage.free_since = Instant::now();
        }
    }
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            usage: Mutex::new(Usage {
                streams: 0,
                free_since: Instant::now(),
            }),
            streams_max: AtomicUsize::new(STREAMS_MAX),
            has_responded: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            refused_at: Mutex::new(None),
            task: AtomicWaker::new(),
        })
    }

    /// Records how many requests the origin takes at once.
    fn learn(&self, streams_max: usize) {
        // An origin that has responded has sent its settings before.
        let is_final = streams_max != STREAMS_BEFORE_SETTINGS || self.has_responded.load(Relaxed);
        if is_final {
            self.streams_max
                .store(streams_max.min(STREAMS_MAX), Relaxed);
        }
    }

    /// Records a refused request. Returns whether it is the first for a while.
    fn note_refusal(&self, now: Instant) -> bool {
        let mut refused_at = self.refused_at.lock();
        let is_first_report = refused_at.is_none_or(|before| before + REFUSALS_FOR <= now);
        if is_first_report {
            *refused_at = Some(now);
        }
        is_first_report
    }

    fn is_free_for(&self, now: Instant) -> Option<Duration> {
        let usage = self.usage.lock();
        (usage.streams == 0).then(|| now.saturating_duration_since(usage.free_since))
    }
}

impl<B> Http2Connection<B> {
    fn new(sender: SendRequest<B>, task: task::Id, shared: Arc<Shared>) -> Self {
        Self {
            sender,
            made_at: Instant::now(),
            task,
            runtime: Handle::current().id(),
            shared,
        }
    }

    /// Whether the connection has carried a response.
    pub(crate) fn has_responded(&self) -> bool {
        self.shared.has_responded.load(Relaxed)
    }

    pub(crate) fn note_response(&self) {
        if !self.shared.has_responded.swap(true, Relaxed) {
            self.shared.task.wake();
        }
    }

    /// Records that the connection ended during a request. Returns whether this is the first
    /// report.
    fn note_failure(&self) -> bool {
        !self.shared.has_failed.swap(true, Relaxed)
    }

    /// Records a request without a response. Returns whether this is the first report of the event.
    pub(crate) fn note_end(&self, closing: Option<Closing>) -> bool {
        match closing {
            None => true,
            Some(Closing::Refused) => self.shared.note_refusal(Instant::now()),
            Some(_) => self.note_failure(),
        }
    }

    /// Adds a stream without checking the limit.
    pub(crate) fn hold(&self) -> StreamHold {
        self.shared.usage.lock().streams += 1;
        StreamHold(Arc::clone(&self.shared))
    }

    /// Adds a stream if the limit allows it.
    fn try_hold(&self) -> Option<StreamHold> {
        let mut usage = self.shared.usage.lock();
        if usage.streams >= self.shared.streams_max.load(Relaxed) {
            return None;
        }
        usage.streams += 1;
        Some(StreamHold(Arc::clone(&self.shared)))
    }
}

impl<B: RequestBody> Http2Connections<B> {
    pub(crate) fn new(keep: Duration) -> Arc<Self> {
        Arc::new(Self {
            keep,
            kept: Mutex::default(),
            connecting: Mutex::default(),
        })
    }

    /// Waits until no other request makes a connection on this runtime, and locks it.
    pub(crate) async fn lock_connecting(&self) -> OwnedMutexGuard<()> {
        let here = Handle::current().id();
        let turn = Arc::clone(self.connecting.lock().entry(here).or_default());
        turn.lock_owned().await
    }

    /// Returns a connection of this runtime with a free stream, and the stream. With `fresh_since`,
    /// only newer connections count, so that requests of a broken connection share the next one.
    pub(crate) fn take(&self, options: SendOptions) -> Option<(Http2Connection<B>, StreamHold)> {
        let mut kept = self.kept.lock();
        let here = kept.here()?;
        self.forget_idle(here);
        // The oldest with a free stream, so that in quiet times the others become idle and are
        // closed.
        here.iter().find_map(|connection| {
            let is_wanted = Some(connection.made_at) > options.fresh_since
                && Some(connection.task) != options.refused_by;
            let hold = is_wanted.then(|| connection.try_hold())??;
            Some((connection.clone(), hold))
        })
    }

    pub(crate) fn put(self: &Arc<Self>, connection: Http2Connection<B>) {
        let mut kept = self.kept.lock();
        kept.at(connection.runtime).push(connection);
        if kept.needs_sweeper() {
            tokio::spawn(look_after(Arc::downgrade(self), self.keep, Self::sweep));
        }
    }

    /// Removes a connection, so that new requests do not use it.
    pub(crate) fn remove(&self, connection: &Http2Connection<B>) {
        let mut kept = self.kept.lock();
        kept.remove(connection.runtime, |known| {
            Arc::ptr_eq(&known.shared, &connection.shared)
        });
    }

    /// Drops idle connections. A connection closes once its senders are dropped and its last
    /// response is read.
    fn forget_idle(&self, connections: &mut Vec<Http2Connection<B>>) {
        let now = Instant::now();
        connections.retain(|connection| {
            let is_young = |free_for: Duration| free_for < self.keep;
            let free_for = connection.shared.is_free_for(now);
            !connection.sender.is_closed() && free_for.is_none_or(is_young)
        });
    }

    /// Closes connections that were idle for too long. Returns whether any remain.
    fn sweep(&self) -> bool {
        let mut kept = self.kept.lock();
        kept.sweep(|connections| self.forget_idle(connections))
    }
}

/// Starts HTTP/2 on a connection.
pub(crate) async fn begin<B: RequestBody>(
    stream: impl Stream,
    limits: &Limits,
) -> Result<Http2Connection<B>, ConnectError> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .initial_max_send_streams(STREAMS_BEFORE_SETTINGS)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WAIT);
    let begun = http.handshake(TokioIo::new(stream)).await;
    let (sender, mut connection) = begun.map_err(ConnectError::Http)?;
    let shared = Shared::new();
    let seen = Arc::clone(&shared);
    let run = poll_fn(move |context| {
        seen.task.register(context.waker());
        let polled = Pin::new(&mut connection).poll(context);
        seen.learn(connection.current_max_send_streams());
        polled
    });
    let task = tokio::spawn(async move {
        if let Err(error) = run.await {
            debug!(
                error = &error as &dyn std::error::Error,
                "a connection to an origin ended"
            );
        }
    });
    Ok(Http2Connection::new(sender, task.id(), shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_at_once_are_one_event_and_lasting_ones_several() {
        let (shared, start) = (Shared::new(), Instant::now());
        let is_first_report = |ms| shared.note_refusal(start + Duration::from_millis(ms));
        let times = (0..=3_000).step_by(250);
        let reported: Vec<u64> = times.filter(|ms| is_first_report(*ms)).collect();
        assert_eq!(reported, [0, 1_000, 2_000, 3_000]);
    }
}
