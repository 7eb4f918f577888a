//! A connection whose client must say its first words within a time.
//!
//! hyper asks a silent client whether it is there only after it has begun to speak HTTP/2 (hyper
//! 1.12, `State::Handshaking` of `proto/h2/server.rs` has no ping). One that never begins would
//! keep its place for ever, and as many as there are places would keep everybody else out.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The preface of a client of HTTP/2 (RFC 9113, section 3.4).
const FIRST_BYTES: usize = 24;

/// A stream that fails if its first bytes do not come in time.
#[derive(Debug)]
pub(crate) struct Opening<S> {
    stream: S,
    /// How many of the first bytes are to come, until when; nothing once they are there.
    awaited: Option<(usize, Pin<Box<Sleep>>)>,
}

impl<S> Opening<S> {
    pub(crate) fn new(stream: S, within: Duration) -> Self {
        let awaited = Some((FIRST_BYTES, Box::pin(sleep(within))));
        Self { stream, awaited }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, awaited } = &mut *self;
        let Some((missing, end)) = awaited else {
            return Pin::new(stream).poll_read(context, buffer);
        };
        if end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(context, buffer))?;
        *missing = missing.saturating_sub(buffer.filled().len() - before);
        if *missing == 0 {
            *awaited = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
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

    /// What becomes of a client that says so much and no more.
    async fn read_all(said: usize) -> Option<io::ErrorKind> {
        let (mut client, server) = duplex(64);
        let mut opening = Opening::new(server, WITHIN);
        client.write_all(&vec![0; said]).await.unwrap();
        let mut read = Vec::new();
        let ended = timeout(2 * WITHIN, opening.read_to_end(&mut read)).await;
        assert_eq!(read.len(), said);
        ended.ok().map(|ended| ended.unwrap_err().kind())
    }

    // tidy: paused time
    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_begin_in_time_is_let_go_and_nobody_else() {
        for too_few in [0, 1, FIRST_BYTES - 1] {
            assert_eq!(read_all(too_few).await, Some(io::ErrorKind::TimedOut));
        }
        for enough in [FIRST_BYTES, FIRST_BYTES + 1] {
            assert_eq!(read_all(enough).await, None);
        }
    }
}
