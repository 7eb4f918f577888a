//! Resources of an origin that a request holds.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::upstream::counts::Counts;
use crate::upstream::http2::StreamHold;

/// Hold of a request on its origin until the response is read. If it is dropped before
/// [`Lease::finish`], it ends the open exchange.
#[derive(Debug, Default)]
pub struct Lease {
    #[expect(dead_code, reason = "held for what its end does")]
    in_flight: Option<InFlight>,
    stream: Option<StreamHold>,
    task: Option<EndOnDrop>,
}

#[derive(Debug)]
struct InFlight(Arc<Counts>);

/// Number of the present request on a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Arc<Mutex<u64>>);

/// Task of a connection, which is aborted on drop if the connection still serves this request.
#[derive(Debug)]
struct EndOnDrop {
    task: AbortHandle,
    turn: Turn,
    mine: u64,
}

/// Turn that no connection has.
const NO_TURN: u64 = u64::MAX;

impl Turn {
    /// Moves to the next request.
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

    /// Adds the hold on the connection.
    pub(crate) fn join(&mut self, part: Self) {
        self.stream = part.stream;
        self.task = part.task;
    }

    /// Marks the exchange as complete; the connection may be used again.
    pub fn finish(&mut self) {
        if let Some(mut part) = self.task.take() {
            part.mine = NO_TURN;
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
        // Under the lock: no other request gets the connection between the check and the abort.
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
    async fn a_dropped_lease_ends_only_its_own_connection() {
        let connection = || tokio::spawn(std::future::pending::<()>());
        let (task, turn) = (connection(), Turn::default());
        drop(Lease::of_task(task.abort_handle(), &turn));
        assert!(is_ended(task).await, "no other request has it");

        let (task, turn) = (connection(), Turn::default());
        let first = Lease::of_task(task.abort_handle(), &turn);
        // The response is still being read, and the connection already serves the next request.
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
        assert!(!is_ended(task).await, "the connection is reusable");
    }
}
