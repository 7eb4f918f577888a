//! What if a client of HTTP/2 does not take one answer, while it takes others?
//!
//! The connection moves, so nothing is noticed there; the answer's stream has no window left, and with
//! it waits the origin. So each stream is watched by itself: a piece was there, and the next one was not
//! asked for within the time that a stuck connection has, too. Then the stream is reset.
//!
//! "Asked for" is when there is room for a byte behind all that was given. So nobody asks on behalf of the
//! last piece: it is handed over as a whole where there is room for its first byte, and the stream's task
//! has ended. That is why pieces are cut, and the last cut is small.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The longest piece that is given at once: the largest frame that every client takes, so that cutting makes
/// no more frames. Who takes one in the time that each has is about as fast as bodies must be.
const PIECE_MAX: usize = 16 * 1024;
/// The longest piece that may be the last of an answer. As much stays in memory for each stream of a client that
/// takes nothing, as long as its connection lasts; where it is smaller, there are more frames.
const TAIL_MAX: usize = 1024;

tokio::task_local! {
    static STREAM: Arc<Stall>;
}

/// Since when a piece of a stream's answer waits to be taken.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    since: Mutex<Option<Instant>>,
}

impl Stall {
    /// The one of the stream whose task this is; `None` for HTTP/1.
    fn of_this_stream() -> Option<Arc<Self>> {
        STREAM.try_with(Arc::clone).ok()
    }

    /// Somebody asks for the next piece.
    fn is_asked(&self) {
        *self.since.lock() = None;
    }

    /// A piece was given.
    fn has_given(&self) {
        *self.since.lock() = Some(Instant::now());
    }

    /// Resolves when a piece was not taken for `patience`.
    async fn too_long(&self, patience: Duration) {
        loop {
            let now = Instant::now();
            let since = self.since.lock().unwrap_or(now);
            if since + patience <= now {
                return;
            }
            tokio::time::sleep_until(since + patience).await;
        }
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

/// Runs the streams of a connection, and gives up on those that are stuck.
#[derive(Clone, Debug)]
pub(crate) struct StreamExecutor {
    pub(crate) patience: Duration,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let patience = self.patience;
        let stall = Arc::new(Stall::default());
        let watched = STREAM.scope(Arc::clone(&stall), async move {
            tokio::select! {
                biased;
                () = stream => {}
                // Dropping it resets the stream.
                () = stall.too_long(patience) => tracing::debug!("an answer is not taken"),
            }
        });
        tokio::spawn(watched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_small_piece_is_the_last() {
        let check = |length: usize, expected: &[usize]| {
            let mut watch = Watch {
                stall: Arc::default(),
                rest: Bytes::new(),
            };
            let whole: Bytes = (0..length).map(|at| at.to_le_bytes()[0]).collect();
            let mut pieces = vec![watch.cut(whole.clone())];
            pieces.extend(std::iter::from_fn(|| watch.next_piece()));
            let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
            assert_eq!(lengths, expected);
            assert_eq!((pieces.concat(), watch.left()), (whole.to_vec(), 0));
            let last = pieces.last().unwrap().as_ptr();
            assert!(!whole.as_ptr_range().contains(&last), "it keeps the whole");
        };
        check(0, &[0]);
        check(1, &[1]);
        check(1_024, &[1_024]);
        check(1_025, &[1, 1_024]);
        check(16_384, &[15_360, 1_024]);
        check(40_000, &[16_384, 16_384, 6_208, 1_024]);
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_answer_that_is_not_taken_is_given_up() {
        let executor = StreamExecutor {
            patience: Duration::from_secs(60),
        };
        let (ended, mut has_ended) = tokio::sync::mpsc::channel::<()>(1);
        let start = Instant::now();
        executor.execute(async move {
            let _ended = ended;
            let stall = Stall::of_this_stream().unwrap();
            // An origin that takes its time, and a client that does.
            tokio::time::sleep(Duration::from_secs(100)).await; // tidy: time passes
            for _ in 0..3 {
                stall.has_given();
                tokio::time::sleep(Duration::from_secs(59)).await; // tidy: time passes
                stall.is_asked();
                tokio::time::sleep(Duration::from_secs(100)).await; // tidy: time passes
            }
            stall.has_given();
            std::future::pending::<()>().await;
        });
        assert_eq!(has_ended.recv().await, None);
        assert_eq!(start.elapsed().as_secs(), 100 + 3 * 159 + 60);
        assert!(Stall::of_this_stream().is_none());
    }
}
