//! Timeouts of writes to a client, and the lingering close.
//!
//! A connection whose writes make no progress for a while is aborted. Otherwise a client that
//! requests a large file and reads nothing would hold a connection here and one to the origin
//! forever. A connection that moves far too slowly is aborted as well. Other modules watch reads.
//!
//! While a request waits for its visitor's turn, a connection whose client has hung up is aborted.
//! At other times the client gets its response even if it has shut down its side.
//!
//! If a client still sends when the connection closes, the close would be a reset, and a reset
//! destroys the response in flight. So a connection lingers: it shuts down its writes, and reads
//! for a moment.
//!
//! This belongs directly on the socket, below TLS. TLS accepts bytes before they are in flight, and
//! sends some of its own, even at the end. Above it, neither could be distinguished from a client
//! that does not read.

use std::io::{Error as IoError, ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::downstream::hold::ConnectionHold;
use crate::downstream::observer::AbortReason;
use crate::downstream::pace::Pace;

/// Time that a connection lingers after its last byte was sent.
///
/// A client that takes longer to read the response to what it still sends gets a reset.
const LINGER: Duration = Duration::from_secs(1);

/// Stream that may notice that the client has hung up without reading what it sent before.
pub(crate) trait HangUp {
    /// Whether the client has shut down its side, or the connection has broken.
    fn has_hung_up(&self, cx: &mut Context<'_>) -> bool;
}

impl HangUp for TcpStream {
    fn has_hung_up(&self, cx: &mut Context<'_>) -> bool {
        let ready = pin!(self.ready(Interest::READABLE));
        matches!(ready.poll(cx), Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }
}

/// Stream whose writes fail when they are stuck for `idle`.
pub(crate) struct TimedIo<T> {
    io: T,
    idle: Duration,
    /// Created at the first write that has to wait; most never do.
    sleep: Option<Pin<Box<Sleep>>>,
    is_stuck: bool,
    pace: Pace,
    /// Hold on the connection, which counts the aborted client.
    hold: Option<ConnectionHold>,
    linger: Option<Pin<Box<Sleep>>>,
}

impl<T> TimedIo<T> {
    pub(crate) const fn new(
        io: T,
        idle: Duration,
        pace: Pace,
        hold: Option<ConnectionHold>,
    ) -> Self {
        Self {
            io,
            idle,
            sleep: None,
            is_stuck: false,
            pace,
            hold,
            linger: None,
        }
    }

    /// Returns the inner stream.
    pub(crate) const fn inner(&self) -> &T {
        &self.io
    }

    fn watch<R: Copy>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<Result<R, IoError>>,
        bytes: impl FnOnce(R) -> usize,
    ) -> Poll<Result<R, IoError>> {
        if let Poll::Ready(result) = written {
            let bytes = result.as_ref().map_or(0, |written| bytes(*written));
            if let Some(hold) = &self.hold {
                hold.note_written(bytes);
            }
            if !std::mem::take(&mut self.is_stuck) {
                self.pace.note(bytes);
                return Poll::Ready(result);
            }
            if self.pace.is_too_slow(bytes, Instant::now()) {
                return Poll::Ready(Err(self.abort()));
            }
            return Poll::Ready(result);
        }
        let idle = self.idle;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(idle)));
        if !self.is_stuck {
            self.is_stuck = true;
            let now = Instant::now();
            self.pace.wait(now);
            sleep.as_mut().reset(now + idle);
        }
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Err(self.abort()))
    }

    fn abort(&self) -> IoError {
        if let Some(hold) = &self.hold {
            hold.observer().aborted(AbortReason::SlowReader);
        }
        IoError::new(ErrorKind::TimedOut, "the client does not read")
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for TimedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), IoError>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

/// Reads and discards until the end or an error.
fn poll_discard<T: AsyncRead + Unpin>(io: &mut T, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        let mut scratch = [0; 4096];
        let mut buffer = ReadBuf::new(&mut scratch);
        let read = ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer));
        if read.is_err() || buffer.filled().is_empty() {
            return Poll::Ready(());
        }
    }
}

impl<T: AsyncRead + AsyncWrite + HangUp + Unpin> AsyncWrite for TimedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, IoError>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.watch(cx, written, |bytes| bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize, IoError>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.watch(cx, written, |bytes| bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        // hyper flushes whenever a response was polled, and reads nothing before it is there.
        let hold = self.hold.as_ref();
        if hold.is_some_and(|hold| hold.entry().ends_with_client()) && self.io.has_hung_up(cx) {
            let error = IoError::new(ErrorKind::ConnectionAborted, "the client has hung up");
            return Poll::Ready(Err(error));
        }
        // A socket is always flushed; any other stream must not be waited for without end.
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.watch(cx, flushed, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        if self.linger.is_none() {
            let shut = Pin::new(&mut self.io).poll_shutdown(cx);
            ready!(self.watch(cx, shut, |()| 0))?;
            self.linger = Some(Box::pin(tokio::time::sleep(LINGER)));
        }
        let this = &mut *self;
        if let Some(linger) = &mut this.linger
            && linger.as_mut().poll(cx).is_pending()
        {
            ready!(poll_discard(&mut this.io, cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
impl HangUp for tokio::io::DuplexStream {
    fn has_hung_up(&self, _: &mut Context<'_>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Stream that accepts all bytes at once and sends them a moment later, as TLS does.
    #[derive(Default)]
    struct Late {
        is_flushing: bool,
    }

    impl AsyncWrite for Late {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<Result<usize, IoError>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
            self.is_flushing = !self.is_flushing;
            if self.is_flushing {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), IoError>> {
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncRead for Late {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<Result<(), IoError>> {
            Poll::Ready(Ok(()))
        }
    }

    impl HangUp for Late {
        fn has_hung_up(&self, _: &mut Context<'_>) -> bool {
            false
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_after_a_late_flush_is_not_a_slow_reader() {
        let idle = Duration::from_secs(15);
        let mut io = TimedIo::new(Late::default(), idle, Pace::new(250), None);
        io.write_all(&[0; 100]).await.unwrap();
        io.flush().await.unwrap();
        tokio::time::advance(Duration::from_secs(20)).await;
        io.write_all(&[0; 17]).await.unwrap();
        io.flush().await.unwrap();
    }

    #[tokio::test]
    async fn a_write_that_nobody_reads_fails() {
        let (near, far) = tokio::io::duplex(8);
        let mut near = TimedIo::new(near, Duration::from_millis(20), Pace::new(0), None);
        near.write_all(b"12345678").await.unwrap();
        let error = near.write_all(b"9").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(far);
    }

    #[tokio::test]
    async fn a_slow_reader_is_served() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = TimedIo::new(near, Duration::from_secs(60), Pace::new(0), None);
        let writer = async {
            near.write_all(&[7; 1000]).await.unwrap();
            drop(near);
        };
        let mut read = Vec::new();
        let (_, ended) = tokio::join!(writer, far.read_to_end(&mut read));
        assert_eq!(ended.unwrap(), 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_below_the_minimum_rate_is_aborted() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = TimedIo::new(near, Duration::from_secs(60), Pace::new(10), None);
        let reader = tokio::spawn(async move {
            let mut byte = [0];
            while far.read_exact(&mut byte).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await; // tidy: time passes
            }
        });
        let error = near.write_all(&[7; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(near);
        reader.await.unwrap();
    }
}
