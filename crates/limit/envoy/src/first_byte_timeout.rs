//! Connection with a timeout for the client's first bytes.
//!
//! hyper sends a ping to a silent client only after that has begun HTTP/2 (hyper 1.12,
//! `State::Handshaking` of `proto/h2/server.rs` has no ping). A client that never begins would keep
//! its connection for ever, and enough of them would keep all others out.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Length of the preface of an HTTP/2 client (RFC 9113, section 3.4).
const FIRST_BYTES: usize = 24;

/// Stream that fails if its first bytes do not come in time.
#[derive(Debug)]
pub(crate) struct FirstByteTimeout<S> {
    stream: S,
    /// Number of first bytes that are missing, and their deadline; `None` once they are there.
    pending: Option<(usize, Pin<Box<Sleep>>)>,
}

impl<S> FirstByteTimeout<S> {
    pub(crate) fn new(stream: S, within: Duration) -> Self {
        let pending = Some((FIRST_BYTES, Box::pin(sleep(within))));
        Self { stream, pending }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstByteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, pending } = &mut *self;
        let Some((missing, end)) = pending else {
            return Pin::new(stream).poll_read(context, buffer);
        };
        if end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(context, buffer))?;
        *missing = missing.saturating_sub(buffer.filled().len() - before);
        if *missing == 0 {
            *pending = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstByteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::timeout;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    /// Sends `sent` bytes and no more, and returns the error, if any.
    async fn read_all(sent: usize) -> Option<io::ErrorKind> {
        let (mut client, server) = duplex(64);
        let mut stream = FirstByteTimeout::new(server, WITHIN);
        client.write_all(&vec![0; sent]).await.unwrap();
        let mut read = Vec::new();
        let ended = timeout(2 * WITHIN, stream.read_to_end(&mut read)).await;
        assert_eq!(read.len(), sent);
        ended.ok().map(|ended| ended.unwrap_err().kind())
    }

    // tidy: paused time
    #[tokio::test(start_paused = true)]
    async fn only_a_client_without_first_bytes_in_time_is_disconnected() {
        for too_few in [0, 1, FIRST_BYTES - 1] {
            assert_eq!(read_all(too_few).await, Some(io::ErrorKind::TimedOut));
        }
        for enough in [FIRST_BYTES, FIRST_BYTES + 1] {
            assert_eq!(read_all(enough).await, None);
        }
    }
}
