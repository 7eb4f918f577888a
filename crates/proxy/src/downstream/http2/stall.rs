//! What if a client of HTTP/2 does not take one answer, while it takes others?
//!
//! The connection moves, so nothing is noticed there; the answer's stream has no window left, and
//! with it waits the origin. So each stream is watched by itself: a piece was there, and the next
//! one was not asked for within the time that a stuck connection has, too. Then the stream is
//! reset.
//!
//! Unless the connection as a whole goes on: on a slow line many answers take turns, and each waits
//! for all the others. Then a stream has [`TURNS_MAX`] times as long, and no longer, for its client
//! may as well take everything but this one. The piece's own bytes count, too: alone it may have
//! twice the time.
//!
//! "Asked for" is when there was room for the first byte of what was given: then it is handed over
//! as a whole, and the next piece is asked for. Nobody asks behind the last piece, for the stream's
//! task has ended. That is why pieces are cut, and the last cut is small (hyper 1.12,
//! `PipeToSendStream::poll`; it has no time-out of a stream).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The longest piece that is given at once: the largest frame that every client takes, so that
/// cutting makes no more frames. Who takes one in the time that each has is about as fast as bodies
/// must be.
const PIECE_MAX: usize = 16 * 1024;
/// The longest piece that may be the last of an answer. As much stays in memory for each stream of
/// a client that takes nothing, as long as its connection lasts; where it is smaller, there are
/// more frames.
const TAIL_MAX: usize = 1024;
/// How many times as long a piece may wait while other answers are taken. A hundred streams with a
/// frame of 16 KiB each, in ten minutes: lines down to 3 KB/s, on which a page is hardly read any
/// more. Fewer, and slower lines lose answers; more, and whoever takes one answer of many holds the
/// others, and the origin's connections, for longer.
const TURNS_MAX: u32 = 10;
/// Fewer bytes than these in all that time are pings and their like, and no answers.
const SIGNS_OF_INCARNATION: u64 = 1024;

tokio::task_local! {
    static STREAM: Arc<Stall>;
}

/// Whether a connection goes on, whatever becomes of one of its streams.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Bytes that have gone to the client.
    written: Arc<AtomicU64>,
    /// For how long it may stand still.
    pub(crate) patience: Duration,
    /// Bytes in that time that are as good as none.
    least: u64,
}

impl Progress {
    pub(crate) fn new(
        written: Arc<AtomicU64>,
        patience: Duration,
        bytes_per_second_min: u64,
    ) -> Self {
        let least = bytes_per_second_min.saturating_mul(patience.as_secs());
        Self {
            written,
            patience,
            least: least.max(SIGNS_OF_INCARNATION),
        }
    }

    /// All bytes until now.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Whether it went on since so many bytes had been written, [`Self::patience`] ago.
    pub(crate) fn went_on_since(&self, written: u64) -> bool {
        self.written() - written >= self.least
    }
}

/// Since when a piece of a stream's answer waits to be taken.
#[derive(Debug)]
pub(crate) struct Stall {
    given: Mutex<Option<Given>>,
    connection: Progress,
}

/// A piece that waits.
#[derive(Debug)]
struct Given {
    at: Instant,
    /// When it was looked at last, and what the connection had written by then.
    looked_at: Instant,
    written: u64,
}

impl Stall {
    const fn new(connection: Progress) -> Self {
        Self {
            given: Mutex::new(None),
            connection,
        }
    }

    /// The one of the stream whose task this is; `None` for HTTP/1.
    fn of_this_stream() -> Option<Arc<Self>> {
        STREAM.try_with(Arc::clone).ok()
    }

    /// Somebody asks for the next piece.
    fn is_asked(&self) {
        *self.given.lock() = None;
    }

    /// A piece was given.
    fn has_given(&self) {
        let now = Instant::now();
        *self.given.lock() = Some(Given {
            at: now,
            looked_at: now,
            written: self.connection.written(),
        });
    }

    /// Resolves when a piece was not taken for too long.
    async fn too_long(&self) {
        while let Some(next) = self.look(Instant::now()) {
            tokio::time::sleep_until(next).await;
        }
    }

    /// When to look again, unless it is too long now.
    fn look(&self, now: Instant) -> Option<Instant> {
        let patience = self.connection.patience;
        let mut given = self.given.lock();
        let Some(given) = &mut *given else {
            return Some(now + patience);
        };
        let due = given.looked_at + patience;
        if now < due {
            return Some(due);
        }
        let is_shared = self.connection.went_on_since(given.written);
        if !is_shared || now >= given.at + patience * TURNS_MAX {
            return None;
        }
        given.looked_at = now;
        given.written = self.connection.written();
        Some(now + patience)
    }
}

/// Cuts an answer into pieces, and notes when they are taken.
#[derive(Debug)]
pub(crate) struct Watch {
    stall: Arc<Stall>,
    /// Of the last piece that came.
    rest: Bytes,
}

impl Watch {
    /// Of the stream whose task this is; `None` for HTTP/1.
    pub(crate) fn of_this_stream() -> Option<Self> {
        Stall::of_this_stream().map(|stall| Self {
            stall,
            rest: Bytes::new(),
        })
    }

    /// The next piece of what has come, if any is left.
    pub(crate) fn next_piece(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        self.stall.has_given();
        let left = self.rest.len();
        if left <= TAIL_MAX {
            // A copy: a part would keep all in memory that it is a part of.
            let tail = Bytes::copy_from_slice(&self.rest);
            self.rest = Bytes::new();
            return Some(tail);
        }
        Some(self.rest.split_to(PIECE_MAX.min(left - TAIL_MAX)))
    }

    /// The first piece of what comes.
    pub(crate) fn cut(&mut self, data: Bytes) -> Bytes {
        self.rest = data;
        self.next_piece().unwrap_or_default()
    }

    /// Something is given that is not cut.
    pub(crate) fn has_given(&self) {
        self.stall.has_given();
    }

    /// Nothing is there to be given.
    pub(crate) fn is_asked(&self) {
        self.stall.is_asked();
    }

    /// Bytes that came and were not given yet.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }
}

/// Runs the streams of one connection, and gives up on those that are stuck.
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
                () = stall.too_long() => tracing::debug!("an answer is not taken"),
            }
        });
        tokio::spawn(watched);
    }
}

#[cfg(test)]
mod tests;
