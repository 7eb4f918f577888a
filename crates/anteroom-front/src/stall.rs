//! What if a client of HTTP/2 does not take one answer, while it takes others?
//!
//! The connection moves, so nothing is noticed there; the answer's stream has no window left, and with
//! it waits the origin. So each stream is watched by itself: a piece was there, and the next one was not
//! asked for within the time that a stuck connection has, too. Then the stream is reset.

use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

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
    pub(crate) fn of_this_stream() -> Option<Arc<Self>> {
        STREAM.try_with(Arc::clone).ok()
    }

    /// Somebody asks for the next piece.
    pub(crate) fn is_asked(&self) {
        *self.since.lock() = None;
    }

    /// A piece was given.
    pub(crate) fn has_given(&self) {
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
