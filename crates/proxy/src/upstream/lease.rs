//! What is held of an origin while a request is there.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::upstream::counts::Counts;
use crate::upstream::http2::StreamHold;

/// A request's place at an origin, until its answer has been read. Let go before that was said with
/// [`Lease::finish`], it ends what is still under way.
#[derive(Debug, Default)]
pub struct Lease {
    #[expect(dead_code, reason = "held for what its end does")]
    in_flight: Option<InFlight>,
    stream: Option<StreamHold>,
    task: Option<EndOnDrop>,
}

#[derive(Debug)]
struct InFlight(Arc<Counts>);

/// Which request a connection is at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Arc<Mutex<u64>>);

/// The task that moves the bytes of a connection, as long as it does so for this request.
#[derive(Debug)]
struct EndOnDrop {
    task: AbortHandle,
    turn: Turn,
    mine: u64,
}

/// No turn of any connection.
const NOBODY: u64 = u64::MAX;

impl Turn {
    /// The connection is free for the next request.
    pub(crate) fn pass_on(&self) {
        *self.0.lock() += 1;
    }
}

impl Lease {
    pub(crate) fn on(counts: &Arc<Counts>) -> Self {
        counts.in_flight.fetch_add(1, Relaxed);
        Self {
            in_flight: Some(InFlight(Arc::clone(counts))),
            ..Self::default()
        }
    }

    pub(crate) fn of_stream(stream: StreamHold) -> Self {
        Self {
            stream: Some(stream),
            ..Self::default()
        }
    }

    pub(crate) fn of_task(task: AbortHandle, turn: &Turn) -> Self {
        let mine = *turn.0.lock();
        let turn = turn.clone();
        Self {
            task: Some(EndOnDrop { task, turn, mine }),
            ..Self::default()
        }
    }

    /// The same place, with what is held of the connection.
    pub(crate) fn join(&mut self, held: Self) {
        self.stream = held.stream;
        self.task = held.task;
    }

    /// Request and answer have gone their way; the connection may be used again.
    pub fn finish(&mut self) {
        if let Some(mut held) = self.task.take() {
            held.mine = NOBODY;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        // Under the lock: nobody else gets the connection between the look and the end.
        let turn = self.turn.0.lock();
        if *turn == self.mine {
            self.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_ended(task: tokio::task::JoinHandle<()>) -> bool {
        tokio::task::yield_now().await;
        task.is_finished()
    }

    #[tokio::test]
    async fn whoever_gives_up_ends_its_own_connection_and_nobody_elses() {
        let connection = || tokio::spawn(std::future::pending::<()>());
        let (task, turn) = (connection(), Turn::default());
        drop(Lease::of_task(task.abort_handle(), &turn));
        assert!(is_ended(task).await, "nobody else has it");

        let (task, turn) = (connection(), Turn::default());
        let first = Lease::of_task(task.abort_handle(), &turn);
        // The answer is on its way to its reader, and the connection to the next request.
        turn.pass_on();
        let second = Lease::of_task(task.abort_handle(), &turn);
        drop(first);
        assert!(!task.is_finished());
        tokio::task::yield_now().await;
        assert!(!task.is_finished(), "the next request is on it");
        drop(second);
        assert!(is_ended(task).await);

        let (task, turn) = (connection(), Turn::default());
        Lease::of_task(task.abort_handle(), &turn).finish();
        assert!(!is_ended(task).await, "it is good for another one");
    }
}
