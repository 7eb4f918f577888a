//! Whose turn is it? Calls of this node for one client that swap its state do so one after the
//! other.
//!
//! Each client has a line of its own, so clients do not wait for each other, whatever becomes of
//! their servers. A line is as long as calls of its client are there, and not longer than
//! [`WAITING_MAX`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anteroom_limit::swapping::WAITING_MAX;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

/// Whoever has waited for so long while the server said nothing has learned that it is silent.
const WAITED_IN_VAIN: Duration = Duration::from_millis(500);
/// How many clients of one server may have a line. A connection has 2,048 calls on it at most, so
/// there are so many only while one is made: some 4 MB, and not more however many come.
const LINES_MAX: usize = 16_384;

/// The lines of all clients of one server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<BTreeMap<u128, Held>>>);

#[derive(Debug)]
struct Held {
    line: Line,
    /// How many calls stand in it.
    calls: usize,
}

#[derive(Clone, Debug, Default)]
struct Line {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// How often the server has answered whoever had the turn.
    answers: Arc<AtomicU64>,
    /// Somebody has waited in vain since it answered last.
    is_silent: Arc<AtomicBool>,
}

/// Why it was nobody's turn in time. Nothing was charged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TurnError {
    /// Too many calls of this client are there.
    Crowded,
    /// The server has not answered the one that has the turn.
    Silent,
}

/// One call's turn. Over when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _alone: OwnedMutexGuard<()>,
    standing: Standing,
}

/// A call in a line.
#[derive(Debug)]
struct Standing {
    turns: Turns,
    client: u128,
    line: Line,
}

impl Turns {
    /// Waits for a client's turn, as long as may be.
    pub(crate) async fn take(&self, client: u128, until: Instant) -> Result<Turn, TurnError> {
        let began = Instant::now();
        let standing = self.stand(client)?;
        let answers = standing.line.answers.load(Relaxed);
        let turn = Arc::clone(&standing.line.turn).lock_owned();
        match timeout_at(until, turn).await {
            Ok(alone) => Ok(Turn {
                _alone: alone,
                standing,
            }),
            Err(_) if standing.line.answers.load(Relaxed) == answers => {
                // Who came with no time left has learned nothing that others should go by.
                if began.elapsed() >= WAITED_IN_VAIN {
                    standing.line.is_silent.store(true, Relaxed);
                }
                Err(TurnError::Silent)
            }
            Err(_) => Err(TurnError::Crowded),
        }
    }

    fn stand(&self, client: u128) -> Result<Standing, TurnError> {
        let mut lines = self.0.lock();
        if lines.len() >= LINES_MAX && !lines.contains_key(&client) {
            return Err(TurnError::Crowded);
        }
        let held = lines.entry(client).or_insert_with(|| Held {
            line: Line::default(),
            calls: 0,
        });
        if held.calls >= WAITING_MAX {
            let is_silent = held.line.is_silent.load(Relaxed);
            return Err(if is_silent {
                TurnError::Silent
            } else {
                TurnError::Crowded
            });
        }
        held.calls += 1;
        Ok(Standing {
            turns: self.clone(),
            client,
            line: held.line.clone(),
        })
    }
}

impl Turn {
    /// The server has answered, so those who wait need not think that it is away.
    pub(crate) fn note_answer(&self) {
        self.standing.line.answers.fetch_add(1, Relaxed);
        self.standing.line.is_silent.store(false, Relaxed);
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let mut lines = self.turns.0.lock();
        if let Some(held) = lines.get_mut(&self.client) {
            held.calls -= 1;
            if held.calls == 0 {
                lines.remove(&self.client);
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
        let mut held = Vec::new();
        for client in 0..200 {
            held.push(turns.take(client, now()).await.unwrap());
        }
        assert_eq!(turns.0.lock().len(), 200);
        drop(held);
        assert_eq!(turns.0.lock().len(), 0);
    }

    #[tokio::test]
    async fn whoever_has_no_turn_in_time_learns_whether_the_server_answers() {
        let turns = Turns::default();
        let turn = turns.take(1, now()).await.unwrap();
        assert_eq!(turns.take(1, now()).await.unwrap_err(), TurnError::Silent);
        let mut second = Box::pin(turns.take(1, now() + Duration::from_millis(1)));
        assert!(second.as_mut().now_or_never().is_none());
        turn.note_answer();
        assert_eq!(second.await.unwrap_err(), TurnError::Crowded);
        drop(turn);
        assert!(turns.take(1, now()).await.is_ok());
    }

    #[tokio::test]
    async fn a_line_and_the_number_of_lines_are_bounded() {
        let turns = Turns::default();
        let standing: Vec<_> = (0..WAITING_MAX).map(|_| turns.stand(1).unwrap()).collect();
        assert_eq!(turns.stand(1).unwrap_err(), TurnError::Crowded);
        let others: Vec<_> = (2..=LINES_MAX as u128)
            .map(|client| turns.stand(client))
            .collect();
        assert!(others.iter().all(Result::is_ok));
        assert_eq!(turns.stand(0).unwrap_err(), TurnError::Crowded);
        drop(standing);
        assert!(turns.stand(0).is_ok());
    }

    /// More than a line holds are told what those are told who stand in it: that says whether they
    /// may go on uncounted.
    #[tokio::test(start_paused = true)]
    async fn a_full_line_reports_whether_the_server_answers_once_known() {
        let turns = Turns::default();
        let turn = turns.take(1, now()).await.unwrap();
        let standing: Vec<_> = (2..WAITING_MAX).map(|_| turns.stand(1).unwrap()).collect();
        assert_eq!(turns.take(1, now()).await.unwrap_err(), TurnError::Silent);
        let last = turns.take(1, now() + WAITED_IN_VAIN);
        let mut last = Box::pin(last);
        assert!(last.as_mut().now_or_never().is_none());
        assert_eq!(turns.stand(1).unwrap_err(), TurnError::Crowded);
        assert_eq!(last.await.unwrap_err(), TurnError::Silent);
        let filling = turns.stand(1).unwrap();
        assert_eq!(turns.stand(1).unwrap_err(), TurnError::Silent);
        turn.note_answer();
        assert_eq!(turns.stand(1).unwrap_err(), TurnError::Crowded);
        drop((standing, filling));
    }
}
