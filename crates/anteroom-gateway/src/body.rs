//! What is a body in this gateway? Nothing, a piece of memory, or a stream from a connection.
//!
//! One type for both directions, so that layers need no type parameter and nothing is boxed on the
//! way through. Streams carry their idle time-out and their size limit with them; trailers pass.
//! It never buffers: a stream is read when the other side takes it, and not before.

mod progress;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, Sleep};

use crate::forwarded;

pub(crate) use progress::Progress;

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// Nothing came for this long.
    #[error("nothing came for {} ms", .after.as_millis())]
    Idle {
        /// How long it was waited.
        after: Duration,
    },
    /// More came than the limit allows.
    #[error("the body is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The connection broke, or what came is not HTTP.
    #[error("could not read the body")]
    Broken(#[source] hyper::Error),
}

/// A request's or a response's body.
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

/// A body that is still on its way.
#[derive(Debug)]
struct Stream {
    incoming: Incoming,
    idle: Duration,
    /// Made when there is something to wait for: most bodies are there at once.
    sleep: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    limit: Option<Limit>,
    progress: Option<Arc<Progress>>,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    bytes: u64,
    left: u64,
}

impl Body {
    /// No body at all.
    #[must_use]
    pub const fn empty() -> Self {
        Self { kind: Kind::Empty }
    }

    /// A body that is in memory.
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

    /// A body from a connection, which fails when nothing comes for `idle`.
    #[must_use]
    pub fn incoming(incoming: Incoming, idle: Duration) -> Self {
        if http_body::Body::is_end_stream(&incoming) {
            return Self::empty();
        }
        let stream = Stream {
            incoming,
            idle,
            sleep: None,
            is_waiting: false,
            limit: None,
            progress: None,
        };
        Self {
            kind: Kind::Stream(stream),
        }
    }

    /// A body that somebody in this process writes, piece by piece, and ends by letting go.
    pub(crate) const fn events(pieces: Receiver<Bytes>) -> Self {
        Self {
            kind: Kind::Events(pieces),
        }
    }

    /// Lets a stream fail once more than `bytes` have come; 0 = no limit.
    #[must_use]
    pub const fn limited(mut self, bytes: u64) -> Self {
        if let Kind::Stream(stream) = &mut self.kind
            && bytes > 0
        {
            stream.limit = Some(Limit { bytes, left: bytes });
        }
        self
    }

    /// Starts to tell how a stream comes along; `None` for a body that is there already.
    pub(crate) fn watch(&mut self) -> Option<Arc<Progress>> {
        let Kind::Stream(stream) = &mut self.kind else {
            return None;
        };
        let progress = Arc::new(Progress::default());
        stream.progress = Some(Arc::clone(&progress));
        Some(progress)
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
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
            Kind::Stream(stream) => stream.incoming.is_end_stream(),
            Kind::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(stream) => stream.incoming.size_hint(),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl Stream {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = http_body::Body::poll_frame(Pin::new(&mut self.incoming), cx);
        let result = match polled {
            Poll::Ready(Some(Ok(frame))) => self.take(frame),
            Poll::Ready(Some(Err(error))) => Err(BodyError::Broken(error)),
            Poll::Ready(None) => {
                self.report(|progress| progress.set_waiting(false));
                return Poll::Ready(None);
            }
            Poll::Pending => Err(ready!(self.poll_idle(cx))),
        };
        if let Err(error) = &result {
            self.report(|progress| progress.fail(error));
        }
        Poll::Ready(Some(result))
    }

    /// Counts a piece that came.
    fn take(&mut self, mut frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyError> {
        self.is_waiting = false;
        self.report(Progress::advance);
        if let Some(trailers) = frame.trailers_mut() {
            // Some readers merge trailers into the headers.
            forwarded::strip_own(trailers);
            forwarded::strip_hearsay(trailers);
        }
        let (Some(limit), Some(data)) = (&mut self.limit, frame.data_ref()) else {
            return Ok(frame);
        };
        let Some(left) = limit.left.checked_sub(data.len() as u64) else {
            let limit_bytes = limit.bytes;
            return Err(BodyError::TooLarge { limit_bytes });
        };
        limit.left = left;
        Ok(frame)
    }

    /// Waits for the idle time-out, counted from the first time that nothing was there.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        let idle = self.idle;
        if !self.is_waiting {
            self.is_waiting = true;
            self.report(|progress| progress.set_waiting(true));
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
        // Nobody waits for the client any more, however its body ended.
        self.report(|progress| progress.set_waiting(false));
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn what_is_in_memory_comes_in_one_piece() {
        let body = Body::from("hello");
        assert_eq!(body.size_hint().exact(), Some(5));
        assert!(!body.is_end_stream());
        assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
    }

    use http_body::Body as _;

    #[tokio::test]
    async fn an_empty_body_says_so_before_it_is_read() {
        for body in [Body::empty(), Body::from(""), Body::default()] {
            assert!(body.is_end_stream());
            assert_eq!(body.size_hint().exact(), Some(0));
            assert_eq!(body.collect().await.unwrap().to_bytes(), "");
        }
    }
}
