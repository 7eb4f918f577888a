//! Drives a room's loop: timers, messages to the stores, and what is told to those who wait.
//!
//! When to speak and what follows from an answer is decided by [`SyncLoop`]; what is said, by the
//! room.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anteroom_room::room::view::View;
use anteroom_room::sync::{Reply, Revocation, SyncRequest};
use anteroom_room::sync_loop::{Action, Change, Sync, SyncLoop, TIMEOUT, UPSTREAM_SYNC_TIME_OUT};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::{BoxFuture, Exchange, StoreError, SyncError, chain};
use tokio::sync::watch;
use tokio::time::sleep_until;

use super::RoomHandle;
use super::wall_time::{self, in_room_time};

/// What is on its way between this room and its stores.
#[derive(Default)]
struct Messages<'a> {
    sync: Option<BoxFuture<'a, Answered>>,
    upstream_sync: Option<BoxFuture<'a, (u64, Result<Reply, SyncError>)>>,
    delivery: Option<BoxFuture<'a, ()>>,
}

/// What came of a sync.
struct Answered {
    round: u64,
    result: Result<(SyncRequest, Exchange), SyncError>,
}

/// What happens next in the loop.
enum Event {
    Synced(Box<Answered>),
    UpstreamSync(u64, Box<Result<Reply, SyncError>>),
    Delivered,
    Hurried,
    Stopped,
    Due,
}

impl<'a> Messages<'a> {
    /// Waits for whichever answer comes first; for ever if nothing is on its way.
    async fn next(&mut self) -> Event {
        let Self {
            sync,
            upstream_sync,
            delivery,
        } = self;
        let event = tokio::select! {
            answered = ready(sync) => Event::Synced(Box::new(answered)),
            (number, result) = ready(upstream_sync) => {
                Event::UpstreamSync(number, Box::new(result))
            }
            () = ready(delivery) => Event::Delivered,
        };
        match &event {
            Event::Synced(_) => self.sync = None,
            Event::UpstreamSync(..) => self.upstream_sync = None,
            _ => self.delivery = None,
        }
        event
    }
}

async fn ready<T>(message: &mut Option<BoxFuture<'_, T>>) -> T {
    match message {
        Some(message) => message.await,
        None => std::future::pending().await,
    }
}

impl RoomHandle {
    /// Talks to the parent until `stop`, then says goodbye.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut sync_loop = SyncLoop::new(self.shared.stores.are_shared(), self.rounds.now());
        let mut messages = Messages::default();
        let mut is_stopping = false;
        while !sync_loop.is_finished() {
            self.perform_actions(&mut sync_loop, &mut messages);
            if sync_loop.is_finished() {
                break;
            }
            let due_at = sync_loop.next_deadline(self.rounds.is_awaited(), self.rounds.now());
            let event = tokio::select! {
                event = messages.next() => event,
                _ = stop.changed(), if !is_stopping => Event::Stopped,
                () = self.rounds.hurried() => Event::Hurried,
                () = async {
                    match due_at {
                        Some(at) => sleep_until(self.rounds.instant(at)).await,
                        None => std::future::pending().await,
                    }
                } => Event::Due,
            };
            match event {
                Event::Synced(answered) => self.handle_answered(&mut sync_loop, *answered),
                Event::UpstreamSync(number, result) => {
                    self.handle_upstream_sync(&mut sync_loop, number, *result)
                }
                Event::Delivered => sync_loop.handle_delivered(),
                Event::Hurried => sync_loop.hurry(),
                Event::Stopped => {
                    is_stopping = true;
                    sync_loop.stop();
                }
                Event::Due => {}
            }
            self.rounds.show(sync_loop.round());
        }
        // Nobody asks the parent any more.
        self.rounds.show(sync_loop.last_round());
    }

    fn perform_actions<'a>(&'a self, sync_loop: &mut SyncLoop, messages: &mut Messages<'a>) {
        loop {
            let is_awaited = self.rounds.is_awaited();
            let Some(action) = sync_loop.poll_action(is_awaited, self.rounds.now()) else {
                return;
            };
            self.rounds.show(sync_loop.round());
            match action {
                Action::Sync(sync) => {
                    self.follow_wall_clock();
                    self.report_good_answers();
                    messages.sync = Some(Box::pin(self.sync(sync, false)));
                }
                Action::Goodbye(sync) => messages.sync = Some(Box::pin(self.sync(sync, true))),
                Action::AskRoot {
                    upstream_sync,
                    request,
                } => {
                    let carried = self.carry(request);
                    messages.upstream_sync =
                        Some(Box::pin(async move { (upstream_sync, carried.await) }));
                }
                Action::Deliver(news) => messages.delivery = Some(Box::pin(self.deliver(news))),
            }
        }
    }

    /// One sync with the parent. Nobody is let in before it is known what operators said, and no
    /// goodbye is said by a process whose name still vouches for a successor.
    async fn sync(&self, sync: Sync, is_goodbye: bool) -> Answered {
        let result = in_time(&self.name, TIMEOUT, async {
            let request = if is_goodbye {
                self.leave_folder()?;
                self.locked(|room, now| room.poll_goodbye(now))
            } else {
                self.learn_overrides().await?;
                self.locked(|room, now| room.poll_sync(now))
            };
            let parent = &self.ledgers.parent;
            let exchange = parent.visit(&request, sync.news.as_ref(), sync.is_wanted);
            Ok((request.clone(), exchange.await?))
        });
        Answered {
            round: sync.round,
            result: result.await,
        }
    }

    fn leave_folder(&self) -> Result<(), SyncError> {
        let Some(process) = &self.shared.process else {
            return Ok(());
        };
        process
            .leave(&self.name)
            .map_err(|source| SyncError::Store {
                room: self.name.clone(),
                source: StoreError::Unavailable {
                    doing: "write into",
                    place: "the data folder".to_owned(),
                    source: Box::new(source),
                },
            })
    }

    /// Takes a request to the world.
    async fn carry(&self, request: SyncRequest) -> Result<Reply, SyncError> {
        match self.ledgers.global.as_ref() {
            Some(global) => {
                in_time(&self.name, UPSTREAM_SYNC_TIME_OUT, global.sync(&request)).await
            }
            // Only a ledger below a root's draws such requests.
            None => std::future::pending().await,
        }
    }

    async fn deliver(&self, news: Reply) {
        // Whoever comes later would find it out without this.
        let _ = in_time(&self.name, TIMEOUT, self.ledgers.parent.deliver(&news)).await;
    }

    fn handle_answered(&self, sync_loop: &mut SyncLoop, answered: Answered) {
        let now = self.rounds.now();
        let was_failing = sync_loop.is_failing();
        let (request, exchange) = match answered.result {
            Ok(answer) => answer,
            Err(error) => {
                sync_loop.handle_failure(answered.round, now);
                if !self.shared.stores.are_shared() {
                    // Another process has the journal and hands over, or nobody will ever read it:
                    // whoever is inside is not put out for that.
                    self.rounds.note_predecessor();
                }
                self.note_failure(&error, was_failing);
                return;
            }
        };
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        if was_failing {
            tracing::info!(room = %self.name, "the store is back");
        }
        let joined = self.locked(|room, room_now| {
            room.handle_reply(exchange.reply.clone(), room_now);
            let jittered = |period: DurationMs| self.shared.random.jittered(period);
            let both = (&request, &exchange);
            sync_loop.handle_exchange(answered.round, both, room, jittered, now);
            self.view.store(Arc::new(View::of(room)));
            self.movement.lock().note(room.snapshot(), room_now);
            let is_joined = room.has_heard_from_parent() && !request.is_leaving;
            is_joined.then(|| (room.in_touch_until(), room.revoked()))
        });
        if let Some((in_touch_until, refused)) = joined {
            let refused: Vec<_> = refused.iter().collect();
            self.note_joined(in_touch_until, &refused);
        }
    }

    /// The parent knows of this process, and with the next sync that it refuses these tickets: its
    /// name is worth something to a successor from now on.
    fn note_joined(&self, in_touch_until: Timestamp, refused: &[Revocation]) {
        if let Some(process) = &self.shared.process
            && let Err(error) = process.note_joined(&self.name, in_touch_until, refused)
        {
            tracing::warn!(
                room = %self.name,
                %error,
                "cannot write into the data folder; a process that starts here after a crash \
                 waits for its store"
            );
        }
        self.rounds.note_joined();
    }

    fn handle_upstream_sync(
        &self,
        sync_loop: &mut SyncLoop,
        number: u64,
        result: Result<Reply, SyncError>,
    ) {
        let now = self.rounds.now();
        match result {
            Ok(reply) => {
                self.counts.global_syncs.fetch_add(1, Ordering::Relaxed);
                if sync_loop.handle_root_reply(number, reply, now) == Change::Recovered {
                    tracing::info!(room = %self.name, "global store available again");
                }
            }
            Err(error) => {
                self.counts
                    .failed_global_syncs
                    .fetch_add(1, Ordering::Relaxed);
                if sync_loop.handle_root_failure(number, now) == Change::Failed {
                    tracing::error!(
                        room = %self.name,
                        cause = chain(&error),
                        "global store unavailable: this data center admits from its lease and \
                         then nobody; check [store] global"
                    );
                }
            }
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
                "waiting for the other process to let go; visitors inside pass, nobody new is \
                 admitted"
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

async fn in_time<T>(
    room: &str,
    timeout: DurationMs,
    work: impl Future<Output = Result<T, SyncError>>,
) -> Result<T, SyncError> {
    let within = Duration::from_millis(timeout.0);
    match tokio::time::timeout(within, work).await {
        Ok(result) => result,
        Err(elapsed) => Err(late(room, elapsed)),
    }
}

fn late(room: &str, elapsed: tokio::time::error::Elapsed) -> SyncError {
    SyncError::Store {
        room: room.to_owned(),
        source: StoreError::Unavailable {
            doing: "reach in time",
            place: format!("the ledger of room {room}"),
            source: Box::new(elapsed),
        },
    }
}
