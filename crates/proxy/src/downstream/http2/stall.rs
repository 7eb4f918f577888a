//! Timeout of HTTP/2 streams whose client does not read the response while the connection moves.
//!
//! Such a stream has no window left, and the origin waits with it. So each stream is watched: if
//! the next piece of a response is not polled within the timeout of a stuck connection, the stream
//! is reset.
//!
//! On a slow link many responses take turns, and each waits for all the others. While the
//! connection as a whole moves, a stream has [`TURNS_MAX`] times as long, but not longer, because
//! its client may read everything but this stream. The bytes of the piece itself count, so a lone
//! stream may have twice the time.
//!
//! hyper polls the next piece when there was room for the first byte of the previous one. It does
//! not poll after the last piece, because the stream's task has ended. So pieces are cut, and the
//! last cut is small (hyper 1.12, `PipeToSendStream::poll`; it has no timeout of a stream).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum size of a piece: the largest frame that every client accepts, so that cutting makes no
/// more frames. A client that reads one per timeout has about the minimum rate of bodies.
const PIECE_MAX: usize = 16 * 1024;
/// Maximum size of the last piece of a response. Each stream of a client that does not read keeps
/// so many bytes in memory for the lifetime of its connection. A smaller size makes more frames.
const TAIL_MAX: usize = 1024;
/// Factor on the timeout while other responses are read. A hundred streams with a frame of 16 KiB
/// each in ten minutes allow links down to 3 KB/s, on which a page is hardly readable. With a
/// smaller factor, slower links lose responses. With a larger one, a client that reads one of many
/// responses holds the others, and the origin's connections, for longer.
const TURNS_MAX: u32 = 10;
/// Bytes within the timeout below which a connection does not move: pings and the like, no
/// responses.
const BYTES_MOVED_MIN: u64 = 1024;

tokio::task_local! {
    static STREAM: Arc<Stall>;
}

/// Progress of a connection, independent of one of its streams.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Bytes written to the client.
    written: Arc<AtomicU64>,
    /// Longest time without progress.
    pub(crate) timeout: Duration,
    /// Bytes within the timeout that do not count as progress.
    least: u64,
}

impl Progress {
    pub(crate) fn new(
        written: Arc<AtomicU64>,
        timeout: Duration,
        bytes_per_second_min: u64,
    ) -> Self {
        let least = bytes_per_second_min.saturating_mul(timeout.as_secs());
        Self {
            written,
            timeout,
            least: least.max(BYTES_MOVED_MIN),
        }
    }

    /// Returns the bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Whether the connection has moved since it had written `written` bytes, one timeout ago.
    pub(crate) fn has_moved_since(&self, written: u64) -> bool {
        self.written() - written >= self.least
    }
}

/// State of the piece of a response that waits to be read.
#[derive(Debug)]
pub(crate) struct Stall {
    unread: Mutex<Option<UnreadPiece>>,
    connection: Progress,
}

/// Piece that waits to be read.
#[derive(Debug)]
struct UnreadPiece {
    at: Instant,
    /// Time of the last check, and the bytes that the connection had written by then.
    looked_at: Instant,
    written: u64,
}

impl Stall {
    const fn new(connection: Progress) -> Self {
        Self {
            unread: Mutex::new(None),
            connection,
        }
    }

    /// Returns the stall state of the current stream's task; `None` for HTTP/1.
    fn of_current_stream() -> Option<Arc<Self>> {
        STREAM.try_with(Arc::clone).ok()
    }

    /// Records that hyper polls the next piece.
    fn note_poll(&self) {
        *self.unread.lock() = None;
    }

    /// Records that a piece was yielded.
    fn note_piece(&self) {
        let now = Instant::now();
        *self.unread.lock() = Some(UnreadPiece {
            at: now,
            looked_at: now,
            written: self.connection.written(),
        });
    }

    /// Resolves when a piece was not read within the timeout.
    async fn too_long(&self) {
        while let Some(next) = self.look(Instant::now()) {
            tokio::time::sleep_until(next).await;
        }
    }

    /// Returns the time of the next check, or `None` after the timeout.
    fn look(&self, now: Instant) -> Option<Instant> {
        let timeout = self.connection.timeout;
        let mut unread = self.unread.lock();
        let Some(unread) = &mut *unread else {
            return Some(now + timeout);
        };
        let due = unread.looked_at + timeout;
        if now < due {
            return Some(due);
        }
        let is_shared = self.connection.has_moved_since(unread.written);
        if !is_shared || now >= unread.at + timeout * TURNS_MAX {
            return None;
        }
        unread.looked_at = now;
        unread.written = self.connection.written();
        Some(now + timeout)
    }
}

/// Cutter of a response into pieces, which records when they are read.
#[derive(Debug)]
pub(crate) struct Watch {
    stall: Arc<Stall>,
    /// Rest of the last frame from the origin.
    rest: Bytes,
}

impl Watch {
    /// Creates the watch of the current stream's task; `None` for HTTP/1.
    pub(crate) fn of_current_stream() -> Option<Self> {
        Stall::of_current_stream().map(|stall| Self {
            stall,
            rest: Bytes::new(),
        })
    }

    /// Returns the next piece of the rest, if there is one.
    pub(crate) fn next_piece(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        self.stall.note_piece();
        let left = self.rest.len();
        if left <= TAIL_MAX {
            // A copy, because a slice would keep the whole frame in memory.
            let tail = Bytes::copy_from_slice(&self.rest);
            self.rest = Bytes::new();
            return Some(tail);
        }
        Some(self.rest.split_to(PIECE_MAX.min(left - TAIL_MAX)))
    }

    /// Stores a frame and returns its first piece.
    pub(crate) fn cut(&mut self, data: Bytes) -> Bytes {
        self.rest = data;
        self.next_piece().unwrap_or_default()
    }

    /// Records that an uncut frame was yielded.
    pub(crate) fn note_piece(&self) {
        self.stall.note_piece();
    }

    /// Records that hyper polls while no data is there.
    pub(crate) fn note_poll(&self) {
        self.stall.note_poll();
    }

    /// Returns the bytes that were received and not yielded yet.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }
}

/// Executor of the streams of one connection, which drops those that are stuck.
#[derive(Clone, Debug)]
pub(crate) struct StreamExecutor {
    pub(crate) connection: Progress,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let stall = Arc::new(Stall::new(self.connection.clone()));
        let watched = STREAM.scope(Arc::clone(&stall), async move {
            tokio::select! {
                biased;
                () = stream => {}
                // Dropping it resets the stream.
                () = stall.too_long() => tracing::debug!("a response is not read"),
            }
        });
        tokio::spawn(watched);
    }
}

#[cfg(test)]
mod tests;
