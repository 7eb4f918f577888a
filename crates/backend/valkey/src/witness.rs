//! What came over a connection before it failed?
//!
//! The client reports most failures as a broken pipe: whoever waits for an answer learns that none
//! will come, not what came instead. So the stream is watched: how it began, its end, its error.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anteroom_config::HostPort;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::failure::{Failure, Reply, is_tls};

/// Every answer begins with one of these.
const FIRST_BYTES: &[u8] = b"+-:$*_#,(!=%~>|";
/// Every message of TLS begins with one of these: an alert, a handshake.
const FIRST_BYTES_OF_TLS: &[u8] = &[0x15, 0x16];

/// How much is kept of what came first: the longest error that a server sends unasked has fewer.
const BEGINNING_BYTES: usize = 256;

/// A stream that is watched.
pub(crate) struct ObservedStream<S> {
    stream: S,
    seen: ObservedReply,
    pieces: Pieces,
}

/// How many pieces came so far; only the first one is of interest.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Pieces {
    None,
    One,
    More,
}

/// What came over a stream so far. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ObservedReply(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    /// What came in the first piece, cut off after [`BEGINNING_BYTES`].
    beginning: Vec<u8>,
    /// Whether more came than that piece.
    has_more: bool,
    has_ended: bool,
    error: Option<Arc<io::Error>>,
}

impl<S> ObservedStream<S> {
    /// Watches `stream`.
    pub(crate) fn new(stream: S) -> (Self, ObservedReply) {
        let seen = ObservedReply::default();
        let witness = Self {
            stream,
            seen: seen.clone(),
            pieces: Pieces::None,
        };
        (witness, seen)
    }
}

impl<S> ObservedStream<S> {
    fn note(&mut self, piece: &[u8]) {
        match self.pieces {
            _ if piece.is_empty() => self.seen.note_end(),
            Pieces::None => {
                self.pieces = Pieces::One;
                let length = piece.len().min(BEGINNING_BYTES);
                self.seen.0.lock().beginning = piece[..length].to_vec();
            }
            Pieces::One => {
                self.pieces = Pieces::More;
                self.seen.0.lock().has_more = true;
            }
            Pieces::More => {}
        }
    }
}

impl ObservedReply {
    /// Why a connection to `server` failed, if more is known than that it did.
    pub(crate) fn explain(&self, server: &HostPort) -> Option<Failure> {
        let notes = self.0.lock();
        let server = server.clone();
        if let Some(error) = &notes.error
            && is_tls(error)
        {
            let source = Arc::clone(error);
            return Some(Failure::Tls { server, source });
        }
        let has_ended = notes.has_ended || notes.error.is_some();
        match notes.beginning.split_first() {
            None if has_ended => Some(Failure::HungUp { server }),
            // A server that has too many clients says so unasked, and closes.
            Some((b'-', line)) if has_ended && !notes.has_more => {
                let line = String::from_utf8_lossy(line);
                let reply = Reply::read(line.lines().next().unwrap_or_default());
                Some(Failure::Answer { server, reply })
            }
            Some((first, _)) if FIRST_BYTES_OF_TLS.contains(first) => {
                Some(Failure::WantsTls { server })
            }
            Some((first, _)) if !FIRST_BYTES.contains(first) => Some(Failure::Strange {
                server,
                what: "another protocol",
            }),
            _ => None,
        }
    }

    fn note_end(&self) {
        self.0.lock().has_ended = true;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        match polled {
            Poll::Ready(Ok(())) => self.note(buffer.filled().get(before..).unwrap_or_default()),
            Poll::Ready(Err(error)) => {
                // There is one error and two who want it.
                let error = Arc::new(error);
                self.seen.0.lock().error = Some(Arc::clone(&error));
                return Poll::Ready(Err(io::Error::new(error.kind(), error)));
            }
            Poll::Pending => {}
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
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
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// What is known after these bytes, and then the end of the stream.
    async fn explained(bytes: &[u8]) -> Option<Failure> {
        let (mut witness, seen) = ObservedStream::new(bytes);
        // Room for all in one piece.
        let mut read = Vec::with_capacity(1_024);
        witness.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, bytes);
        seen.explain(&HostPort {
            host: "localhost".to_owned(),
            port: 6379,
        })
    }

    #[tokio::test]
    async fn the_beginning_tells_who_it_is() {
        assert!(explained(b"+OK\r\n").await.is_none());
        assert!(explained(b"$-1\r\nHTTP").await.is_none());
        let http = explained(b"HTTP/1.1 400 Bad Request\r\n").await;
        assert!(matches!(http, Some(Failure::Strange { .. })));
        let alert = explained(&[0x15, 3, 3, 0, 2, 2, 70]).await;
        assert!(matches!(alert, Some(Failure::WantsTls { .. })));
        let full = explained(b"-ERR max number of clients reached\r\n").await;
        assert!(
            full.unwrap()
                .to_string()
                .ends_with("answers: ERR max number of clients reached")
        );
        let nothing = explained(b"").await;
        assert!(matches!(nothing, Some(Failure::HungUp { .. })));
    }
}
