//! Queues that serialize requests of this node which swap the state of the same client.
//!
//! Each client has its own queue, so clients do not wait for each other, whatever happens at their
//! servers. A queue exists while it has requests, at most [`WAITING_MAX`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anteroom_limit::swapping::WAITING_MAX;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

/// Wait without any reply of the server after which it counts as unavailable.
const NO_REPLY_AFTER: Duration = Duration::from_millis(500);
/// Most clients of one server with a queue. A connection has 2,048 requests at most, so there are
/// that many only while it connects: some 4 MB.
const QUEUES_MAX: usize = 16_384;

/// Queues of all clients of a server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<BTreeMap<u128, Entry>>>);

#[derive(Debug)]
struct Entry {
    queue: Queue,
    /// Requests in the queue.
    requests: usize,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Number of replies to requests that had the turn.
    replies: Arc<AtomicU64>,
    /// Set if a request has timed out since the last reply.
    has_no_reply: Arc<AtomicBool>,
}

/// Reason why a request did not get its turn in time. Nothing was acquired.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TurnError {
    /// Requests of this client fill the queue.
    Busy,
    /// The server has not replied to the request that has the turn.
    NoReply,
}

/// Turn of one request. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _guard: OwnedMutexGuard<()>,
    waiter: Waiter,
}

/// Request in a queue.
#[derive(Debug)]
struct Waiter {
    turns: Turns,
    client: u128,
    queue: Queue,
}

impl Turns {
    /// Waits for the turn of a request, until `until`.
    pub(crate) async fn take(&self, client: u128, until: Instant) -> Result<Turn, TurnError> {
        let began = Instant::now();
        let waiter = self.enqueue(client)?;
        let replies = waiter.queue.replies.load(Relaxed);
        let turn = Arc::clone(&waiter.queue.turn).lock_owned();
        match timeout_at(until, turn).await {
            Ok(guard) => Ok(Turn {
                _guard: guard,
                waiter,
            }),
            Err(_) if waiter.queue.replies.load(Relaxed) == replies => {
                // A request that had no time left proves nothing about the server.
                if began.elapsed() >= NO_REPLY_AFTER {
                    waiter.queue.has_no_reply.store(true, Relaxed);
                }
                Err(TurnError::NoReply)
            }
            Err(_) => Err(TurnError::Busy),
        }
    }

    fn enqueue(&self, client: u128) -> Result<Waiter, TurnError> {
        let mut queues = self.0.lock();
        if queues.len() >= QUEUES_MAX && !queues.contains_key(&client) {
            return Err(TurnError::Busy);
        }
        let entry = queues.entry(client).or_insert_with(|| Entry {
            queue: Queue::default(),
            requests: 0,
        });
        if entry.requests >= WAITING_MAX {
            let has_no_reply = entry.queue.has_no_reply.load(Relaxed);
            return Err(if has_no_reply {
                TurnError::NoReply
            } else {
                TurnError::Busy
            });
        }
        entry.requests += 1;
        Ok(Waiter {
            turns: self.clone(),
            client,
            queue: entry.queue.clone(),
        })
    }
}

impl Turn {
    /// Records a reply of the server for the waiting requests.
    pub(crate) fn note_reply(&self) {
        self.waiter.queue.replies.fetch_add(1, Relaxed);
        self.waiter.queue.has_no_reply.store(false, Relaxed);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut queues = self.turns.0.lock();
        if let Some(entry) = queues.get_mut(&self.client) {
            entry.requests -= 1;
            if entry.requests == 0 {
                queues.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn now() -> Instant {
        Instant::now()
    }

    #[tokio::test]
    async fn clients_do_not_wait_for_each_other_and_leave_nothing_behind() {
        let turns = Turns::default();
        let mut turns_taken = Vec::new();
        for client in 0..200 {
            turns_taken.push(turns.take(client, now()).await.unwrap());
        }
        assert_eq!(turns.0.lock().len(), 200);
        drop(turns_taken);
        assert_eq!(turns.0.lock().len(), 0);
    }

    #[tokio::test]
    async fn a_request_without_a_turn_learns_whether_the_server_replies() {
        let turns = Turns::default();
        let turn = turns.take(1, now()).await.unwrap();
        assert_eq!(turns.take(1, now()).await.unwrap_err(), TurnError::NoReply);
        let mut second = Box::pin(turns.take(1, now() + Duration::from_millis(1)));
        assert!(second.as_mut().now_or_never().is_none());
        turn.note_reply();
        assert_eq!(second.await.unwrap_err(), TurnError::Busy);
        drop(turn);
        assert!(turns.take(1, now()).await.is_ok());
    }

    #[tokio::test]
    async fn the_length_and_the_number_of_queues_are_bounded() {
        let turns = Turns::default();
        let waiters: Vec<_> = (0..WAITING_MAX)
            .map(|_| turns.enqueue(1).unwrap())
            .collect();
        assert_eq!(turns.enqueue(1).unwrap_err(), TurnError::Busy);
        let others: Vec<_> = (2..=QUEUES_MAX as u128)
            .map(|client| turns.enqueue(client))
            .collect();
        assert!(others.iter().all(Result::is_ok));
        assert_eq!(turns.enqueue(0).unwrap_err(), TurnError::Busy);
        drop(waiters);
        assert!(turns.enqueue(0).is_ok());
    }

    /// A request that does not fit into the queue gets the same error as those in it. The error
    /// decides whether the request may be admitted uncounted.
    #[tokio::test(start_paused = true)]
    async fn a_full_queue_reports_whether_the_server_replies_once_known() {
        let turns = Turns::default();
        let turn = turns.take(1, now()).await.unwrap();
        let waiters: Vec<_> = (2..WAITING_MAX)
            .map(|_| turns.enqueue(1).unwrap())
            .collect();
        assert_eq!(turns.take(1, now()).await.unwrap_err(), TurnError::NoReply);
        let last = turns.take(1, now() + NO_REPLY_AFTER);
        let mut last = Box::pin(last);
        assert!(last.as_mut().now_or_never().is_none());
        assert_eq!(turns.enqueue(1).unwrap_err(), TurnError::Busy);
        assert_eq!(last.await.unwrap_err(), TurnError::NoReply);
        let last_waiter = turns.enqueue(1).unwrap();
        assert_eq!(turns.enqueue(1).unwrap_err(), TurnError::NoReply);
        turn.note_reply();
        assert_eq!(turns.enqueue(1).unwrap_err(), TurnError::Busy);
        drop((waiters, last_waiter));
    }
}
