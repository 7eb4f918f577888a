//! A room's loop: one conversation with its parent at a time, and one errand to the world's ledger
//! when it is this node's turn.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anteroom_core::room::syncing::SYNC_PERIOD;
use anteroom_core::sync::{Reply, SyncRequest};
use anteroom_store::{Exchange, LedgerPlace, StoreError, SyncError, chain};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::RoomHandle;
use super::pace::Pace;
use super::view::View;
use super::wall_time::{self, in_room_time};

/// A round that takes longer has failed: a disk or network that hangs must not hold the loop.
const ROUND_TIME_OUT: Duration = Duration::from_secs(2);
/// Pause after a failed round; a store that is away is asked this often.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);
/// What somebody else brings from the world is looked for so much later than it is expected.
const AFTER_OTHERS: Duration = Duration::from_millis(5);

/// How the conversation stands.
struct Talk {
    pace: Pace,
    was_failing: bool,
    was_world_failing: bool,
    /// This node's errand to the world.
    errand: Option<JoinHandle<Result<Reply, SyncError>>>,
    /// What it brought, for the parent.
    news: Option<Reply>,
    /// When somebody else is expected back from the world.
    others_back_at: Option<Instant>,
}

impl Talk {
    fn new(is_paced: bool) -> Self {
        Self {
            pace: Pace::new(is_paced, Instant::now()),
            was_failing: false,
            was_world_failing: false,
            errand: None,
            news: None,
            others_back_at: None,
        }
    }

    /// Waits for the end of the errand; for ever if there is none.
    async fn errand_ends(&mut self) -> Result<Reply, SyncError> {
        match &mut self.errand {
            Some(errand) => {
                let ended = errand.await;
                self.errand = None;
                // An errand neither panics nor is it aborted while it is waited for.
                match ended {
                    Ok(result) => result,
                    Err(_) => std::future::pending().await,
                }
            }
            None => std::future::pending().await,
        }
    }
}

impl RoomHandle {
    /// Talks to the parent until `stop`, then says goodbye.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut talk = Talk::new(self.shared.stores.are_shared());
        while !*stop.borrow() {
            let is_success = self.round(&mut talk).await;
            tokio::select! {
                _ = stop.changed() => break,
                () = self.pause(&mut talk, is_success) => {}
            }
        }
        self.say_goodbye(&mut talk).await;
    }

    /// Until the next round is due, somebody is in a hurry, or there is news from the world.
    async fn pause(&self, talk: &mut Talk, is_success: bool) {
        if !is_success {
            // Whoever is in a hurry does not make a broken store whole.
            tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            return;
        }
        let now = Instant::now();
        let period = Duration::from_millis(self.room.lock().sync_period().0);
        let due_at = now + self.shared.random.jittered(period);
        let mut hurry_at = talk.pace.next_at(now);
        if let Some(back_at) = talk.others_back_at {
            hurry_at = hurry_at.max(back_at + AFTER_OTHERS);
        }
        let is_on_errand = talk.errand.is_some();
        tokio::select! {
            () = tokio::time::sleep_until(due_at) => return,
            // Whoever waits while the errand is out waits for what it brings.
            () = self.hurried(hurry_at), if !is_on_errand => return,
            brought = talk.errand_ends() => self.take_news(talk, brought),
        }
        if !self.rounds.is_awaited() {
            // Nobody waits for it: it goes along with the next round, if that comes soon.
            let soon = Instant::now() + Duration::from_millis(SYNC_PERIOD.0);
            tokio::select! {
                () = tokio::time::sleep_until(due_at.min(soon)) => {}
                () = self.hurried(hurry_at) => {}
            }
        }
    }

    /// Returns when somebody is in a hurry, and it is time for another round.
    async fn hurried(&self, not_before: Instant) {
        self.rounds.hurried().await;
        tokio::time::sleep_until(not_before).await;
    }

    async fn round(&self, talk: &mut Talk) -> bool {
        self.follow_wall_clock();
        self.report_good_answers();
        let is_wanted = self.rounds.is_awaited();
        self.rounds.begin();
        talk.pace.note_round(Instant::now());
        let news = talk.news.as_ref();
        let result = self
            .in_time(async {
                self.learn_orders().await?;
                let request = self.locked(|room, now| room.poll_sync(now));
                let parent = &self.ledgers.parent;
                let exchange = parent.visit(&request, news, is_wanted).await?;
                let is_short = is_short(&request, &exchange.reply);
                Ok((exchange, is_short))
            })
            .await;
        let is_success = result.is_ok();
        match result {
            Ok((exchange, is_short)) => {
                if talk.was_failing {
                    tracing::info!(room = %self.name, "the store is back");
                }
                talk.news = None;
                self.apply(talk, exchange, is_short);
            }
            Err(error) => self.note_failure(&error, talk.was_failing),
        }
        talk.was_failing = !is_success;
        self.rounds.end(is_success);
        is_success
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, SyncError>>,
    ) -> Result<T, SyncError> {
        match tokio::time::timeout(ROUND_TIME_OUT, work).await {
            Ok(result) => result,
            Err(elapsed) => Err(late(&self.name, elapsed)),
        }
    }

    /// Takes a request to the world, while this room goes on.
    fn run_errand(&self, talk: &mut Talk, request: SyncRequest) {
        let Some(world) = self.ledgers.world.clone() else {
            return;
        };
        talk.errand = Some(tokio::spawn(carry(world, request, self.name.clone())));
    }

    fn take_news(&self, talk: &mut Talk, brought: Result<Reply, SyncError>) {
        let is_failing = brought.is_err();
        match brought {
            Ok(reply) => {
                self.counts.world_syncs.fetch_add(1, Ordering::Relaxed);
                if talk.was_world_failing {
                    tracing::info!(room = %self.name, "the world's store is back");
                }
                talk.news = Some(reply);
            }
            Err(error) => {
                self.counts
                    .failed_world_syncs
                    .fetch_add(1, Ordering::Relaxed);
                if !talk.was_world_failing {
                    tracing::error!(
                        room = %self.name,
                        cause = chain(&error),
                        "the world's store is away: what this data center was lent is used up, then \
                         nobody is admitted here; check [store] world"
                    );
                }
            }
        }
        talk.was_world_failing = is_failing;
        self.rounds.note_world(is_failing);
    }

    fn apply(&self, talk: &mut Talk, exchange: Exchange, is_short: bool) {
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        // What is missing here and in the data center comes with them, and not before.
        let back_after = exchange.others_back_after;
        let back_after = back_after.filter(|_| is_short && talk.errand.is_none());
        talk.others_back_at =
            back_after.map(|after| Instant::now() + Duration::from_millis(after.0));
        self.locked(|room, now| {
            room.handle_reply(exchange.reply, now);
            self.view.store(Arc::new(View::of(room)));
            self.movement.lock().note(room.outlook(), now);
        });
        if let Some(request) = exchange.errand {
            self.run_errand(talk, request);
        }
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
                room = %self.name,
                cause,
                "waiting for the other process to let go; visitors inside pass, nobody new is admitted"
            );
        } else {
            let remedy = if self.shared.stores.are_shared() {
                "check the server and [store]"
            } else {
                "check disk and data_dir"
            };
            tracing::error!(
                room = %self.name,
                cause,
                "the store is away: what is lent is used up, then nobody is admitted; {remedy}"
            );
        }
    }

    /// Gives everything back, so that nothing is counted as possibly used. The last node of a data
    /// center gives back for that as well.
    async fn say_goodbye(&self, talk: &mut Talk) {
        if talk.errand.is_some() {
            let brought = talk.errand_ends().await;
            self.take_news(talk, brought);
        }
        self.rounds.begin();
        let request = self.locked(|room, now| room.poll_goodbye(now));
        let visit = self
            .ledgers
            .parent
            .visit(&request, talk.news.as_ref(), false);
        match self.in_time(visit).await {
            Ok(exchange) => self.apply(talk, exchange, false),
            Err(error) => {
                tracing::warn!(room = %self.name, cause = chain(&error), "left without a goodbye");
            }
        }
        // Nobody asks the parent any more.
        self.rounds.end(false);
        if talk.errand.is_some() {
            let brought = talk.errand_ends().await;
            self.take_news(talk, brought);
            if let Some(news) = &talk.news {
                // Only to let a successor know; it would find out by itself.
                let _ = self.in_time(self.ledgers.parent.deliver(news)).await;
            }
        }
    }

    /// Times of opening stay where the operator meant them when the wall clock is set.
    fn follow_wall_clock(&self) {
        // Or rules that an operator is just replacing would be put back.
        let _turn = self.changing.lock();
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

/// Whether the parent had less than was asked for.
fn is_short(request: &SyncRequest, reply: &Reply) -> bool {
    match reply {
        Reply::Lent(answer) => {
            let has = request.held.seats.saturating_add(answer.granted.seats);
            has < request.wants.slots.saturating_add(request.wants.first)
        }
        Reply::Void { .. } | Reply::Stale => false,
    }
}

async fn carry(world: LedgerPlace, request: SyncRequest, room: String) -> Result<Reply, SyncError> {
    match tokio::time::timeout(ROUND_TIME_OUT, world.sync(&request)).await {
        Ok(result) => result,
        Err(elapsed) => Err(late(&room, elapsed)),
    }
}

fn late(room: &str, elapsed: tokio::time::error::Elapsed) -> SyncError {
    SyncError::Store {
        room: room.to_owned(),
        source: StoreError::Unavailable {
            doing: "reach within two seconds",
            place: format!("the ledger of room {room}"),
            source: Box::new(elapsed),
        },
    }
}
