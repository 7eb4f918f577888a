//! A room's loop: one conversation with its parent at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anteroom_core::ledger::LendingTerms;
use anteroom_core::sync::{Reply, SyncRequest};
use anteroom_store::{StoreError, SyncError, sync};
use tokio::sync::watch;

use super::RoomHandle;
use super::view::View;
use super::wall_time::{self, in_room_time};

/// A round that takes longer has failed: a disk or network that hangs must not hold the loop.
const ROUND_TIME_OUT: Duration = Duration::from_secs(2);
/// Pause after a failed round; a store that is away is asked this often.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

impl RoomHandle {
    /// Talks to the parent until `stop`, then says goodbye.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut was_failing = false;
        while !*stop.borrow() {
            let is_success = self.round(&mut was_failing).await;
            let pause = if is_success {
                Duration::from_millis(self.room.lock().sync_period().0)
            } else {
                PAUSE_AFTER_FAILURE
            };
            tokio::select! {
                _ = stop.changed() => break,
                () = self.pause(pause, is_success) => {}
            }
        }
        self.say_goodbye().await;
    }

    async fn pause(&self, pause: Duration, is_success: bool) {
        if is_success {
            self.rounds.until_due(pause).await;
        } else {
            // Whoever is in a hurry does not make a broken store whole.
            tokio::time::sleep(pause).await;
        }
    }

    async fn round(&self, was_failing: &mut bool) -> bool {
        self.follow_wall_clock();
        self.report_good_answers();
        self.rounds.begin();
        let request = self.locked(|room, now| room.poll_sync(now));
        let result = self.send(&request).await;
        let is_success = result.is_ok();
        match result {
            Ok(reply) => {
                if *was_failing {
                    tracing::info!(room = %self.key.0, "the store is back");
                }
                self.apply(reply);
            }
            Err(error) => self.note_failure(&error, *was_failing),
        }
        *was_failing = !is_success;
        self.rounds.end(is_success);
        is_success
    }

    async fn send(&self, request: &SyncRequest) -> Result<Reply, SyncError> {
        let store = &*self.shared.store;
        let sending = sync(store, &self.key, request, LendingTerms::default());
        match tokio::time::timeout(ROUND_TIME_OUT, sending).await {
            Ok(result) => result,
            Err(elapsed) => Err(SyncError::Store {
                room: self.key.0.clone(),
                source: StoreError::Unavailable {
                    doing: "reach within two seconds",
                    place: format!("the ledger of room {}", self.key.0),
                    source: Box::new(elapsed),
                },
            }),
        }
    }

    fn apply(&self, reply: Reply) {
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        self.locked(|room, now| {
            room.handle_reply(reply, now);
            self.view.store(Arc::new(View::of(room)));
        });
    }

    fn note_failure(&self, error: &SyncError, was_failing: bool) {
        self.counts.failed_syncs.fetch_add(1, Ordering::Relaxed);
        if was_failing {
            return;
        }
        let cause = chain(error);
        let is_held = matches!(
            error,
            SyncError::Store {
                source: StoreError::Held { .. },
                ..
            }
        );
        if is_held {
            tracing::warn!(
                room = %self.key.0,
                cause,
                "waiting for the other process to let go; visitors inside pass, nobody new is admitted"
            );
        } else {
            tracing::error!(
                room = %self.key.0,
                cause,
                "the store is away: what is lent is used up, then nobody is admitted; check disk and data_dir"
            );
        }
    }

    /// Gives everything back, so that nothing is counted as possibly used.
    async fn say_goodbye(&self) {
        self.rounds.begin();
        let request = self.locked(|room, now| room.poll_goodbye(now));
        let result = self.send(&request).await;
        match result {
            Ok(reply) => self.apply(reply),
            Err(error) => {
                tracing::warn!(room = %self.key.0, cause = chain(&error), "left without a goodbye");
            }
        }
        // Nobody asks the parent any more.
        self.rounds.end(false);
    }

    /// Times of opening stay where the operator meant them when the wall clock is set.
    fn follow_wall_clock(&self) {
        let configured = self.settings.load().config.rules;
        if configured.opens_at.is_none() {
            return;
        }
        let rules = in_room_time(configured, &*self.shared.clock);
        self.locked(|room, _| {
            let apart = match (room.rules().opens_at, rules.opens_at) {
                (Some(held), Some(meant)) => held.0.abs_diff(meant.0),
                _ => 0,
            };
            if apart > wall_time::TOLERANCE.0 {
                room.handle_rules(rules);
            }
        });
    }
}

/// An error with its causes, on one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
