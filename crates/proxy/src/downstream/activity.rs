//! Activity of one connection: its open requests, their number, and whether it has left HTTP.
//!
//! Shared by the reader of the connection, by each of its requests and by the task that closes it.
//! A request is open until its whole response is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::downstream::connection_table::Entry;
use crate::downstream::drain::DrainSignal;
use crate::downstream::http2::stall::Watch;

/// Upgrade state: HTTP, without a pending upgrade.
const HTTP: u8 = 0;
/// Upgrade state: requested, without a response yet.
const REQUESTED: u8 = 1;
/// Upgrade state: the connection is a tunnel.
const TUNNEL: u8 = 2;

/// Timeouts between requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleTimeouts {
    /// Timeout for the head of a request, and for the first request of a connection.
    pub(crate) head: Duration,
    /// Timeout for the next request.
    pub(crate) keep_alive: Duration,
}

/// Requests of one connection and its upgrade state.
pub(crate) struct Activity {
    open: AtomicUsize,
    requests: AtomicU64,
    requests_max: u64,
    is_full: AtomicBool,
    full: Notify,
    idle_since: Mutex<Instant>,
    upgrade: AtomicU8,
    /// Number of the request with the upgrade; responses to others do not change the state.
    upgrade_number: AtomicU64,
    upgrade_waker: Mutex<Option<Waker>>,
    signal: DrainSignal,
    entry: Arc<Entry>,
}

impl Activity {
    /// Creates the activity of a connection with at most `requests_max` requests; 0 means no limit.
    pub(crate) fn new(requests_max: u64, signal: DrainSignal, entry: &Arc<Entry>) -> Arc<Self> {
        Arc::new(Self {
            entry: Arc::clone(entry),
            open: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            requests_max: if requests_max == 0 {
                u64::MAX
            } else {
                requests_max
            },
            is_full: AtomicBool::new(false),
            full: Notify::new(),
            idle_since: Mutex::new(Instant::now()),
            upgrade: AtomicU8::new(HTTP),
            upgrade_number: AtomicU64::new(0),
            upgrade_waker: Mutex::new(None),
            signal,
        })
    }

    /// Counts a request that begins.
    pub(crate) fn begin(self: &Arc<Self>) -> OpenRequest {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.entry.begin();
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if number >= self.requests_max {
            self.close();
        }
        OpenRequest {
            activity: Arc::clone(self),
            number,
            is_busy: true,
        }
    }

    /// Keeps the connection from being closed to make room: a part of a request has arrived.
    pub(crate) fn hold(&self) -> Busy<'_> {
        self.entry.begin();
        Busy(&self.entry)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    /// Whether no request has arrived on this connection.
    pub(crate) fn is_new(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }

    /// Whether the connection should take no more requests.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Ends the connection with its next response, or at once while it has no request.
    pub(crate) fn close(&self) {
        self.is_full.store(true, Ordering::Relaxed);
        self.full.notify_one();
    }

    /// Returns the number of requests that have arrived.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Resolves when the connection should take no more requests: it has served its maximum, or was
    /// idle for too long.
    pub(crate) async fn is_over(&self, timeouts: IdleTimeouts) {
        let is_unused = async {
            // A new client is about to send its first request.
            while self.is_new() {
                let since = *self.idle_since.lock();
                if since + timeouts.head <= Instant::now() {
                    return;
                }
                tokio::time::sleep_until(since + timeouts.head).await;
            }
            self.is_idle_for(timeouts.keep_alive).await;
        };
        tokio::select! {
            () = self.full.notified() => {}
            () = is_unused => {}
        }
    }

    /// Resolves when no request was open for `wait`.
    pub(crate) async fn is_idle_for(&self, wait: Duration) {
        loop {
            let now = Instant::now();
            let since = if self.is_idle() {
                *self.idle_since.lock()
            } else {
                now
            };
            if since + wait <= now {
                return;
            }
            tokio::time::sleep_until(since + wait).await;
        }
    }

    /// Records that request `number` (from 1) asks for an upgrade. Until its response, the
    /// following bytes belong to neither HTTP nor a tunnel. Call it before the request is handled.
    pub(crate) fn request_upgrade(&self, number: u64) {
        self.upgrade_number.store(number, Ordering::Relaxed);
        self.upgrade.store(REQUESTED, Ordering::Release);
    }

    /// Returns whether the connection became a tunnel, once that is known.
    pub(crate) fn poll_upgrade(&self, cx: &Context<'_>) -> Poll<bool> {
        *self.upgrade_waker.lock() = Some(cx.waker().clone());
        match self.upgrade.load(Ordering::Acquire) {
            REQUESTED => Poll::Pending,
            state => Poll::Ready(state == TUNNEL),
        }
    }

    fn note_response(&self, number: u64, status: StatusCode) {
        let is_requested = self.upgrade.load(Ordering::Acquire) == REQUESTED
            && self.upgrade_number.load(Ordering::Relaxed) == number;
        if !is_requested {
            return;
        }
        let state = if status == StatusCode::SWITCHING_PROTOCOLS {
            TUNNEL
        } else {
            HTTP
        };
        self.upgrade.store(state, Ordering::Release);
        if let Some(waker) = self.upgrade_waker.lock().take() {
            waker.wake();
        }
    }
}

/// Hold on a connection; ends when it is dropped.
pub(crate) struct Busy<'a>(&'a Entry);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.finish(Instant::now());
    }
}

/// Open request; counts until it is dropped.
pub(crate) struct OpenRequest {
    activity: Arc<Activity>,
    number: u64,
    /// Whether the request protects its connection from being closed to make room.
    is_busy: bool,
}

impl OpenRequest {
    /// Allows the connection to close before the rest of the response is sent.
    fn allow_close(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_busy) {
            self.activity.entry.finish(now);
        }
    }

    /// Records the head of the response. Returns whether it is the last one of the connection.
    pub(crate) fn note_head(&mut self, status: StatusCode, is_own: bool) -> bool {
        let activity = &self.activity;
        activity.note_response(self.number, status);
        let is_last = activity.is_full.load(Ordering::Relaxed) || activity.signal.is_leaving();
        if status == StatusCode::SWITCHING_PROTOCOLS {
            self.become_tunnel();
            return is_last;
        }
        if !is_own {
            return is_last;
        }
        let is_short = activity.entry.closes_with_own_answer();
        if is_short {
            activity.close();
        }
        self.allow_close(Instant::now());
        is_last || is_short
    }

    /// Marks the connection as a tunnel, which is never idle.
    fn become_tunnel(&mut self) {
        self.is_busy = false;
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let now = Instant::now();
        self.allow_close(now);
        let activity = &self.activity;
        // Store the time before the count drops to zero, so that a reader who sees no open request
        // also sees the time.
        *activity.idle_since.lock() = now;
        activity.open.fetch_sub(1, Ordering::Relaxed);
    }
}

pin_project! {
    /// Future of a response, on a connection.
    pub(crate) struct PendingResponse<F, B> {
        #[pin]
        inner: F,
        open: Option<OpenRequest>,
        version: Version,
        is_own: fn(&Response<B>) -> bool,
    }
}

impl<F, B> PendingResponse<F, B> {
    pub(crate) const fn new(
        inner: F,
        open: OpenRequest,
        version: Version,
        is_own: fn(&Response<B>) -> bool,
    ) -> Self {
        Self {
            inner,
            open: Some(open),
            version,
            is_own,
        }
    }
}

impl<F, B, E> Future for PendingResponse<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<Tracked<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.inner.poll(cx))?;
        let mut open = this.open.take();
        if let Some(open) = &mut open {
            let is_own = (this.is_own)(&response);
            let is_last = open.note_head(response.status(), is_own);
            // HTTP/2 uses a frame instead, and has no such header.
            let has_header = matches!(*this.version, Version::HTTP_10 | Version::HTTP_11);
            if is_last && has_header && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
        }
        Poll::Ready(Ok(response.map(|body| Tracked {
            body,
            watch: Watch::of_current_stream(),
            _open: open,
        })))
    }
}

pin_project! {
    /// Body of a response; the request is open until it is dropped.
    pub(crate) struct Tracked<B> {
        #[pin]
        body: B,
        watch: Option<Watch>,
        _open: Option<OpenRequest>,
    }
}

impl<B: Body<Data = Bytes>> Body for Tracked<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let Some(watch) = this.watch else {
            return this.body.poll_frame(cx);
        };
        if let Some(piece) = watch.next_piece() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match this.body.poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let frame = match frame.into_data() {
                    Ok(data) => Frame::data(watch.cut(data)),
                    Err(other) => {
                        watch.note_piece();
                        other
                    }
                };
                Poll::Ready(Some(Ok(frame)))
            }
            nothing => {
                watch.note_poll();
                nothing
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0 && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(self.left()));
        }
        hint.set_lower(hint.lower().saturating_add(self.left()));
        hint
    }
}

impl<B> Tracked<B> {
    /// Returns the bytes that were received and not yielded yet.
    fn left(&self) -> u64 {
        self.watch.as_ref().map_or(0, |watch| watch.left() as u64)
    }
}

#[cfg(test)]
impl Activity {
    /// Begins a request and responds to it with a status.
    pub(crate) fn begin_and_respond(self: &Arc<Self>, status: u16) {
        let open = self.begin();
        self.note_response(open.number, StatusCode::from_u16(status).unwrap());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::drain::drain;
    use crate::downstream::hold::ConnectionHold;
    use crate::downstream::observer::{ConnectionObserver, Unobserved};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn later_requests_have_the_keep_alive_timeout() {
        let (_trigger, signal) = drain();
        let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
        let hold = ConnectionHold::alone(&observer, signal.clone());
        let timeouts = IdleTimeouts {
            head: 10 * SECOND,
            keep_alive: 75 * SECOND,
        };
        for requests in [0, 2] {
            let activity = Activity::new(0, signal.clone(), hold.entry());
            let start = Instant::now();
            for _ in 0..requests {
                let open = activity.begin();
                let over = tokio::time::timeout(100 * SECOND, activity.is_over(timeouts));
                assert!(over.await.is_err(), "a response may take its time");
                drop(open);
            }
            activity.is_over(timeouts).await;
            let expected = if requests == 0 { 10 } else { 200 + 75 };
            assert_eq!(start.elapsed().as_secs(), expected);
        }
    }
}
