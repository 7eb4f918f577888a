//! Body of a request or response: nothing, a piece of memory, or a stream from a connection.
//!
//! One type for both directions, so that layers need no type parameter and nothing is boxed on the
//! way. Streams carry their idle timeout and their size limit; trailers pass. Nothing is buffered:
//! a stream is read only when the other side polls it.

mod error;
mod progress;
mod trailers;
mod yielding;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::downstream::pace::Pace;
use crate::upstream::Lease;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

pub use error::BodyError;
pub(crate) use progress::Progress;
use yielding::Turn;

/// Body of a request or of a response.
#[derive(Debug, Default)]
pub struct Body {
    kind: Kind,
}

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Empty,
    Full(Bytes),
    Stream(Stream),
    Events(Receiver<Bytes>),
}

/// Body that is still being read from a connection.
#[derive(Debug)]
struct Stream {
    /// `None` while a [`Progress`] owns it.
    incoming: Option<Incoming>,
    idle: Duration,
    /// Created when a read has to wait: most bodies are there at once.
    sleep: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    limit: Option<Limit>,
    /// Minimum rate; few bodies have one.
    pace: Option<Box<Pace>>,
    progress: Option<Arc<Progress>>,
    /// Permission that must be granted before the first read.
    hold: Option<oneshot::Receiver<()>>,
    turn: Turn,
    attached: Option<Attached>,
}

/// Resources that are held until a response's body has ended.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Lease of the request at its origin.
    pub(crate) lease: Lease,
    /// Permission for the request's body, if it was never granted; the body ends without it.
    pub(crate) ungranted: Option<oneshot::Sender<()>>,
    /// Request's body, if it had one: it is dropped after the response.
    pub(crate) request: Option<Arc<Progress>>,
}

impl Attached {
    /// Releases the resources after the response was read.
    fn finish(mut self) {
        if self.request.as_ref().is_none_or(|body| body.is_over()) {
            self.lease.finish();
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            request.abandon();
        }
        // Wakes the reader of the request's body, which then ends.
        drop(self.ungranted.take());
    }
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    bytes: u64,
    left: u64,
}

impl Body {
    /// Creates an empty body.
    #[must_use]
    pub const fn empty() -> Self {
        Self { kind: Kind::Empty }
    }

    /// Creates a body from bytes in memory.
    #[must_use]
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let kind = if bytes.is_empty() {
            Kind::Empty
        } else {
            Kind::Full(bytes)
        };
        Self { kind }
    }

    /// Creates a body from a connection. It fails when nothing arrives for `idle`.
    #[must_use]
    pub(crate) fn incoming(incoming: Incoming, idle: Duration) -> Self {
        if http_body::Body::is_end_stream(&incoming) {
            return Self::empty();
        }
        let stream = Stream {
            incoming: Some(incoming),
            idle,
            sleep: None,
            is_waiting: false,
            limit: None,
            pace: None,
            progress: None,
            hold: None,
            turn: Turn::default(),
            attached: None,
        };
        Self {
            kind: Kind::Stream(stream),
        }
    }

    /// Creates a body from a channel; it ends when the sender is dropped.
    pub const fn events(pieces: Receiver<Bytes>) -> Self {
        Self {
            kind: Kind::Events(pieces),
        }
    }

    /// Fails a stream after more than `bytes`; 0 means no limit.
    #[must_use]
    pub const fn limited(mut self, bytes: u64) -> Self {
        if let Kind::Stream(stream) = &mut self.kind
            && bytes > 0
        {
            stream.limit = Some(Limit { bytes, left: bytes });
        }
        self
    }

    /// Fails a stream that is slower than this while the gateway waits for it; 0 means no limit.
    #[must_use]
    pub(crate) fn paced(mut self, bytes_per_second_min: u64) -> Self {
        if let Kind::Stream(stream) = &mut self.kind {
            stream.pace = Some(Box::new(Pace::new(bytes_per_second_min)));
        }
        self
    }

    /// Holds resources until the body has ended; releases them at once if it has.
    pub(crate) fn attach(mut self, attached: Attached) -> Self {
        if let Kind::Stream(stream) = &mut self.kind {
            stream.attached = Some(attached);
        } else {
            attached.finish();
        }
        self
    }

    /// Reads a stream only after `granted`, and never if its sender is dropped.
    pub(crate) fn hold(&mut self, granted: oneshot::Receiver<()>) {
        if let Kind::Stream(stream) = &mut self.kind {
            stream.hold = Some(granted);
        }
    }

    /// Whether the body comes from this process and not from a connection.
    pub(crate) const fn is_own(&self) -> bool {
        !matches!(self.kind, Kind::Stream(_))
    }

    /// Shares the progress of a stream; `None` for a body in memory.
    pub(crate) fn watch(&mut self) -> Option<Arc<Progress>> {
        let Kind::Stream(stream) = &mut self.kind else {
            return None;
        };
        let progress = Arc::new(Progress::of(stream.incoming.take()?));
        stream.progress = Some(Arc::clone(&progress));
        Some(progress)
    }
}

/// Body type of a layer's responses, which may also come from the service behind it.
pub trait ResponseBody: Send + 'static {
    /// Converts the body of a response that the layer itself creates.
    fn from_own(body: Body) -> Self;
}

impl ResponseBody for Body {
    fn from_own(body: Body) -> Self {
        body
    }
}

#[cfg(feature = "axum")]
impl ResponseBody for axum::body::Body {
    fn from_own(body: Body) -> Self {
        Self::new(body)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::full(text)
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::full(text)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => {
                let frame = Frame::data(std::mem::take(bytes));
                self.kind = Kind::Empty;
                Poll::Ready(Some(Ok(frame)))
            }
            Kind::Stream(stream) => stream.poll_frame(cx),
            Kind::Events(pieces) => pieces
                .poll_recv(cx)
                .map(|piece| piece.map(|p| Ok(Frame::data(p)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Full(_) => false,
            Kind::Stream(stream) => stream.is_over(),
            Kind::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(stream) => stream.with(SizeHint::default(), Incoming::size_hint),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl Stream {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        ready!(self.turn.poll(cx));
        if let Some(granted) = &mut self.hold {
            if ready!(Pin::new(granted).poll(cx)).is_err() {
                return Poll::Ready(Some(Err(BodyError::Unwanted)));
            }
            self.hold = None;
        }
        let polled = match (&mut self.incoming, &self.progress) {
            (Some(incoming), _) => Pin::new(incoming).poll_frame(cx),
            (None, Some(progress)) => match progress.incoming.lock().as_mut() {
                Some(incoming) => Pin::new(incoming).poll_frame(cx),
                None => return Poll::Ready(Some(Err(BodyError::Unwanted))),
            },
            (None, None) => Poll::Ready(None),
        };
        let result = match polled {
            Poll::Ready(Some(Ok(frame))) => {
                // Trailers are last, and hyper 1.12 does not check whether more follows.
                let is_last = frame.is_trailers();
                let taken = self.take(frame);
                if taken.is_ok() && (is_last || self.is_over()) {
                    self.finish();
                }
                taken
            }
            Poll::Ready(Some(Err(error))) => Err(BodyError::Broken(error)),
            Poll::Ready(None) => {
                self.finish();
                return Poll::Ready(None);
            }
            Poll::Pending => Err(ready!(self.poll_idle(cx))),
        };
        if let Err(error) = &result {
            self.report(|progress| progress.fail(error));
        }
        Poll::Ready(Some(result))
    }

    /// Whether the stream has ended.
    fn is_over(&self) -> bool {
        self.hold.is_none() && self.with(true, Incoming::is_end_stream)
    }

    fn with<T>(&self, default: T, read: impl FnOnce(&Incoming) -> T) -> T {
        match (&self.incoming, &self.progress) {
            (Some(incoming), _) => read(incoming),
            (None, Some(progress)) => progress.incoming.lock().as_ref().map_or(default, read),
            (None, None) => default,
        }
    }

    /// Releases the resources after the last read.
    fn finish(&mut self) {
        self.report(Progress::finish);
        if let Some(attached) = self.attached.take() {
            attached.finish();
        }
    }

    /// Checks a received frame against the limits.
    fn take(&mut self, mut frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyError> {
        self.is_waiting = false;
        self.report(Progress::advance);
        if let Some(trailers) = frame.trailers_mut() {
            trailers::clean(trailers);
        }
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        self.turn.note(bytes);
        if let Some(pace) = &mut self.pace
            && pace.is_too_slow(bytes, Instant::now())
        {
            let bytes_per_second_min = pace.bytes_per_second_min();
            return Err(BodyError::Slow {
                bytes_per_second_min,
            });
        }
        let Some(limit) = &mut self.limit else {
            return Ok(frame);
        };
        let Some(left) = limit.left.checked_sub(bytes as u64) else {
            let limit_bytes = limit.bytes;
            return Err(BodyError::TooLarge { limit_bytes });
        };
        limit.left = left;
        Ok(frame)
    }

    /// Waits for the idle timeout, which starts at the first read without data.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        let idle = self.idle;
        if !self.is_waiting {
            self.is_waiting = true;
            self.report(|progress| progress.set_waiting(true));
            if let Some(pace) = &mut self.pace {
                pace.wait(Instant::now());
            }
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(Instant::now() + idle),
                None => self.sleep = Some(Box::pin(tokio::time::sleep(idle))),
            }
        }
        if let Some(sleep) = &mut self.sleep {
            ready!(sleep.as_mut().poll(cx));
        }
        Poll::Ready(BodyError::Idle { after: idle })
    }

    fn report(&self, what: impl FnOnce(&Progress)) {
        if let Some(progress) = &self.progress {
            what(progress);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The client is no longer waited for, however its body ended.
        self.report(|progress| progress.set_waiting(false));
    }
}

#[cfg(test)]
mod tests;
