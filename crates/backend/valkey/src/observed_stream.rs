//! Observer of a stream that explains why a connection failed.
//!
//! The client reports most failures as a broken pipe: a caller learns that no reply will come, not
//! what came instead. So the stream is observed: its beginning, its end, its error.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anteroom_config::HostPort;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::failure::{Failure, Reply, is_tls};

/// First bytes of all replies.
const FIRST_BYTES: &[u8] = b"+-:$*_#,(!=%~>|";
/// First bytes of messages of TLS: an alert, a handshake.
const FIRST_BYTES_OF_TLS: &[u8] = &[0x15, 0x16];

/// Bytes kept of the beginning: the longest unsolicited error of a server is shorter.
const BEGINNING_BYTES: usize = 256;

/// Stream that is observed.
pub(crate) struct ObservedStream<S> {
    stream: S,
    seen: ObservedReply,
    pieces: Pieces,
}

/// Number of pieces received; only the first one matters.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Pieces {
    None,
    One,
    More,
}

/// Observations of a stream. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ObservedReply(Arc<Mutex<Observations>>);

#[derive(Default)]
struct Observations {
    /// First piece, truncated after [`BEGINNING_BYTES`].
    beginning: Vec<u8>,
    /// Whether more than that piece came.
    has_more: bool,
    has_ended: bool,
    error: Option<Arc<io::Error>>,
}

impl<S> ObservedStream<S> {
    /// Starts to observe `stream`.
    pub(crate) fn new(stream: S) -> (Self, ObservedReply) {
        let seen = ObservedReply::default();
        let observed = Self {
            stream,
            seen: seen.clone(),
            pieces: Pieces::None,
        };
        (observed, seen)
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
    /// Explains why a connection to `server` failed, if anything is known.
    pub(crate) fn explain(&self, server: &HostPort) -> Option<Failure> {
        let observed = self.0.lock();
        let server = server.clone();
        if let Some(error) = &observed.error
            && is_tls(error)
        {
            let source = Arc::clone(error);
            return Some(Failure::Tls { server, source });
        }
        let has_ended = observed.has_ended || observed.error.is_some();
        match observed.beginning.split_first() {
            None if has_ended => Some(Failure::HungUp { server }),
            // A server with too many clients sends an unsolicited error and closes.
            Some((b'-', line)) if has_ended && !observed.has_more => {
                let line = String::from_utf8_lossy(line);
                let reply = Reply::read(line.lines().next().unwrap_or_default());
                Some(Failure::ErrorReply { server, reply })
            }
            Some((first, _)) if FIRST_BYTES_OF_TLS.contains(first) => {
                Some(Failure::WantsTls { server })
            }
            Some((first, _)) if !FIRST_BYTES.contains(first) => Some(Failure::UnexpectedReply {
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
                // The reader and the observer both need the error.
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

    /// Returns the explanation after these bytes and the end of the stream.
    async fn explain(bytes: &[u8]) -> Option<Failure> {
        let (mut stream, seen) = ObservedStream::new(bytes);
        // Large enough to read everything in one piece.
        let mut read = Vec::with_capacity(1_024);
        stream.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, bytes);
        seen.explain(&HostPort {
            host: "localhost".to_owned(),
            port: 6379,
        })
    }

    #[tokio::test]
    async fn the_first_bytes_identify_the_protocol() {
        assert!(explain(b"+OK\r\n").await.is_none());
        assert!(explain(b"$-1\r\nHTTP").await.is_none());
        let http = explain(b"HTTP/1.1 400 Bad Request\r\n").await;
        assert!(matches!(http, Some(Failure::UnexpectedReply { .. })));
        let alert = explain(&[0x15, 3, 3, 0, 2, 2, 70]).await;
        assert!(matches!(alert, Some(Failure::WantsTls { .. })));
        let full = explain(b"-ERR max number of clients reached\r\n").await;
        assert!(
            full.unwrap()
                .to_string()
                .ends_with("replies: ERR max number of clients reached")
        );
        let nothing = explain(b"").await;
        assert!(matches!(nothing, Some(Failure::HungUp { .. })));
    }
}
