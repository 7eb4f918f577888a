//! HTTP/2 connections to one origin; each carries many requests at once.
//!
//! A connection is taken by the runtime on which its task runs, and by no other: whoever shares one
//! with another runtime wakes a thread twice for each request, and the threads of all runtimes wait
//! for the one that moves its bytes. So each runtime has as many as its own requests need: together
//! at most one more for each runtime than if all were shared.
//!
//! What is buffered is bounded: an answer that nobody reads holds [`STREAM_WINDOW`] bytes, and a
//! connection's window is so large that all its answers may be held without stopping one that is
//! read.

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
use crate::upstream::kept::{Kept, look_after};
use crate::upstream::limits::Limits;
use crate::upstream::request::{How, RequestBody};

/// Bytes of one answer that may be on their way without having been read. At a round trip of 5 ms
/// to the origin it allows 50 MB/s for each request.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Requests at once on one connection, or fewer if the origin allows fewer; one more opens another.
/// What RFC 9113 advises servers to allow at least.
const STREAMS_MAX: usize = 100;
/// Of a whole connection: see [`STREAM_WINDOW`]. A slow visitor must not hold up others.
#[expect(clippy::cast_possible_truncation, reason = "100 fits")]
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_MAX as u32;
/// Bytes of one upload that may wait for the origin.
const SEND_BUFFER: usize = 256 * 1024;
/// Requests at once on a connection whose origin has not yet said how many it allows: the others
/// wait for that word, which is the first that it says, so none is ever refused for being one too
/// many.
const STREAMS_UNTIL_TOLD: usize = 1;
/// How long nothing may come on a connection with requests on it until it is asked whether it is
/// still there, and how long it may take to say so. Without it, an origin that lost its power is
/// noticed after minutes; as things are, after ten seconds. A ping costs 17 bytes, and only where
/// an origin is silent.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_WAIT: Duration = Duration::from_secs(5);
/// How long requests that are refused over one connection are one event: an origin that is full for
/// a moment refuses many at once, which must not count as many in a row without an answer; and one
/// that refuses all is noticed in a few of these.
const REFUSALS_FOR: Duration = Duration::from_secs(1);

/// All connections to one origin.
#[derive(Debug)]
pub(crate) struct Http2Connections<B> {
    /// How long one is kept that nobody uses.
    keep: Duration,
    kept: Mutex<Kept<Http2Connection<B>>>,
    /// Held on a runtime while a connection is made that others there may share.
    connecting: Mutex<HashMap<runtime::Id, Arc<AsyncMutex<()>>>>,
}

#[derive(Debug)]
pub(crate) struct Http2Connection<B> {
    pub(crate) sender: SendRequest<B>,
    made_at: Instant,
    /// What moves its bytes, and tells it from others.
    pub(crate) task: task::Id,
    /// Where that runs.
    runtime: runtime::Id,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    usage: Mutex<Usage>,
    /// How many requests the origin takes at once, as far as that is known, and we give.
    streams_max: AtomicUsize,
    has_answered: AtomicBool,
    has_failed: AtomicBool,
    /// When a refused request was an event last.
    refused_at: Mutex<Option<Instant>>,
    /// Whoever moves the connection's bytes, and learns what the origin allows: hyper 1.12 tells
    /// nobody else (`Connection::current_max_send_streams`).
    task: AtomicWaker,
}

#[derive(Debug)]
struct Usage {
    streams: usize,
    /// Since when there are none, if there are none.
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

/// A request's place on a connection, until its answer has been read.
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
            has_answered: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            refused_at: Mutex::new(None),
            task: AtomicWaker::new(),
        })
    }

    /// Takes note of how many requests the origin takes at once.
    fn learn(&self, streams_max: usize) {
        // An origin that has answered has said before what it allows.
        let is_told = streams_max != STREAMS_UNTIL_TOLD || self.has_answered.load(Relaxed);
        if is_told {
            self.streams_max
                .store(streams_max.min(STREAMS_MAX), Relaxed);
        }
    }

    /// Says that one request was refused; whether nobody has said so for a while.
    fn note_refusal(&self, now: Instant) -> bool {
        let mut refused_at = self.refused_at.lock();
        let is_news = refused_at.is_none_or(|before| before + REFUSALS_FOR <= now);
        if is_news {
            *refused_at = Some(now);
        }
        is_news
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

    /// Whether an answer came over it before.
    pub(crate) fn has_answered(&self) -> bool {
        self.shared.has_answered.load(Relaxed)
    }

    pub(crate) fn note_answer(&self) {
        if !self.shared.has_answered.swap(true, Relaxed) {
            self.shared.task.wake();
        }
    }

    /// Says that it ended under a request; whether nobody has said so before.
    fn note_failure(&self) -> bool {
        !self.shared.has_failed.swap(true, Relaxed)
    }

    /// Says that it brought no answer to a request; whether that is the first that is heard of it.
    pub(crate) fn note_end(&self, closing: Option<Closing>) -> bool {
        match closing {
            None => true,
            Some(Closing::Refused) => self.shared.note_refusal(Instant::now()),
            Some(_) => self.note_failure(),
        }
    }

    /// A place for one request, whether it bears one more or not.
    pub(crate) fn hold(&self) -> StreamHold {
        self.shared.usage.lock().streams += 1;
        StreamHold(Arc::clone(&self.shared))
    }

    /// A place for one more request, if it bears one.
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

    /// Waits for whoever makes a connection on this runtime.
    pub(crate) async fn alone(&self) -> OwnedMutexGuard<()> {
        let here = Handle::current().id();
        let turn = Arc::clone(self.connecting.lock().entry(here).or_default());
        turn.lock_owned().await
    }

    /// A connection of this runtime that bears one more request, and this one; made after a moment,
    /// if one is given: many whose connection broke share the next one.
    pub(crate) fn take(&self, how: How) -> Option<(Http2Connection<B>, StreamHold)> {
        let mut kept = self.kept.lock();
        let here = kept.here()?;
        self.forget_idle(here);
        // The oldest that has room: in quiet times the others are used no more, and closed.
        here.iter().find_map(|line| {
            let is_wanted =
                Some(line.made_at) > how.fresh_since && Some(line.task) != how.refused_by;
            let hold = is_wanted.then(|| line.try_hold())??;
            Some((line.clone(), hold))
        })
    }

    pub(crate) fn put(self: &Arc<Self>, line: Http2Connection<B>) {
        let mut kept = self.kept.lock();
        kept.at(line.runtime).push(line);
        if kept.needs_sweeper() {
            tokio::spawn(look_after(Arc::downgrade(self), self.keep, Self::sweep));
        }
    }

    /// Uses a connection no more for new requests.
    pub(crate) fn remove(&self, line: &Http2Connection<B>) {
        let mut kept = self.kept.lock();
        kept.remove(line.runtime, |known| {
            Arc::ptr_eq(&known.shared, &line.shared)
        });
    }

    /// A connection is closed when nobody has its sender any more, and its last answer has been
    /// read.
    fn forget_idle(&self, lines: &mut Vec<Http2Connection<B>>) {
        let now = Instant::now();
        lines.retain(|line| {
            let is_young = |free_for: Duration| free_for < self.keep;
            !line.sender.is_closed() && line.shared.is_free_for(now).is_none_or(is_young)
        });
    }

    /// Closes what nobody has used for too long; whether anything is left.
    fn sweep(&self) -> bool {
        let mut kept = self.kept.lock();
        kept.sweep(|lines| self.forget_idle(lines))
    }
}

/// Begins HTTP/2 on a connection.
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
        .initial_max_send_streams(STREAMS_UNTIL_TOLD)
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
        let is_news = |ms| shared.note_refusal(start + Duration::from_millis(ms));
        let told: Vec<u64> = (0..=3_000).step_by(250).filter(|ms| is_news(*ms)).collect();
        assert_eq!(told, [0, 1_000, 2_000, 3_000]);
    }
}
