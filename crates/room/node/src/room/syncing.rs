//! Driver of a room's sync loop: timers, messages to the stores, and wake-ups of waiting visitors.
//!
//! [`SyncLoop`] decides when to sync and what follows from a reply. The room makes the requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anteroom_room::ledger_exchange::Delivery;
use anteroom_room::room::view::View;
use anteroom_room::sync::{Reply, Revocation, SyncRequest};
use anteroom_room::sync_loop::{Action, Change, Sync, SyncLoop, TIMEOUT, UPSTREAM_SYNC_TIME_OUT};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::{BoxFuture, Exchange, StoreError, SyncError, chain};
use tokio::sync::watch;
use tokio::time::sleep_until;

use super::RoomHandle;

/// Messages in flight between this room and its stores.
#[derive(Default)]
struct Messages<'a> {
    sync: Option<BoxFuture<'a, SyncResult>>,
    upstream_sync: Option<BoxFuture<'a, (u64, Result<Reply, SyncError>)>>,
    delivery: Option<BoxFuture<'a, ()>>,
}

/// Result of a sync.
struct SyncResult {
    round: u64,
    result: Result<(SyncRequest, Exchange), SyncError>,
}

/// Next event of the loop.
enum Event {
    Synced(Box<SyncResult>),
    UpstreamSync(u64, Box<Result<Reply, SyncError>>),
    Delivered,
    SyncRequested,
    Stopped,
    Due,
}

impl<'a> Messages<'a> {
    /// Waits for the first reply; for ever if no message is in flight.
    async fn next(&mut self) -> Event {
        let Self {
            sync,
            upstream_sync,
            delivery,
        } = self;
        let event = tokio::select! {
            result = ready(sync) => Event::Synced(Box::new(result)),
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
    /// Syncs with the parent until `stop`, then sends a goodbye.
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
                () = self.rounds.sync_requested() => Event::SyncRequested,
                () = async {
                    match due_at {
                        Some(at) => sleep_until(self.rounds.instant(at)).await,
                        None => std::future::pending().await,
                    }
                } => Event::Due,
            };
            match event {
                Event::Synced(result) => self.handle_synced(&mut sync_loop, *result),
                Event::UpstreamSync(number, result) => {
                    self.handle_upstream_sync(&mut sync_loop, number, *result)
                }
                Event::Delivered => sync_loop.handle_delivered(),
                Event::SyncRequested => sync_loop.request_sync(),
                Event::Stopped => {
                    is_stopping = true;
                    sync_loop.stop();
                }
                Event::Due => {}
            }
            self.rounds.publish(sync_loop.round());
        }
        // No sync follows, so visitors must not wait for one.
        self.rounds.publish(sync_loop.last_round());
    }

    fn perform_actions<'a>(&'a self, sync_loop: &mut SyncLoop, messages: &mut Messages<'a>) {
        loop {
            let is_awaited = self.rounds.is_awaited();
            let Some(action) = sync_loop.poll_action(is_awaited, self.rounds.now()) else {
                return;
            };
            self.rounds.publish(sync_loop.round());
            match action {
                Action::Sync(sync) => {
                    self.report_good_responses();
                    messages.sync = Some(Box::pin(self.sync(sync, false)));
                }
                Action::Goodbye(sync) => messages.sync = Some(Box::pin(self.sync(sync, true))),
                Action::SyncUpstream {
                    upstream_sync,
                    request,
                } => {
                    let reply = self.sync_with_root(request);
                    messages.upstream_sync =
                        Some(Box::pin(async move { (upstream_sync, reply.await) }));
                }
                Action::Deliver(delivery) => {
                    messages.delivery = Some(Box::pin(self.deliver(delivery)));
                }
            }
        }
    }

    /// Syncs with the parent. The overrides are read before, because no visitor may be admitted
    /// without them. A goodbye is sent only after the room is removed from the process's file.
    async fn sync(&self, sync: Sync, is_goodbye: bool) -> SyncResult {
        let name = self.name();
        let result = in_time(name.as_str(), TIMEOUT, async {
            let mut request = if is_goodbye {
                self.leave_folder()?;
                self.locked(|room, now| room.poll_goodbye(now))
            } else {
                self.learn_overrides().await?;
                self.locked(|room, now| room.poll_sync(now))
            };
            sync.parent_view.stamp(&mut request, self.rounds.now());
            let parent = &self.ledgers.parent;
            let exchange = parent.exchange(&request, sync.root_reply.as_ref(), sync.is_wanted);
            Ok((request.clone(), exchange.await?))
        });
        SyncResult {
            round: sync.round,
            result: result.await,
        }
    }

    fn leave_folder(&self) -> Result<(), SyncError> {
        let Some(process) = &self.shared.process else {
            return Ok(());
        };
        process
            .leave(self.id.as_str())
            .map_err(|source| SyncError::Store {
                room: self.name().to_string(),
                source: StoreError::Unavailable {
                    doing: "write into",
                    store_name: "the data folder".to_owned(),
                    source: Box::new(source),
                },
            })
    }

    /// Sends a request to the root's ledger.
    async fn sync_with_root(&self, request: SyncRequest) -> Result<Reply, SyncError> {
        match self.ledgers.global.as_ref() {
            Some(global) => {
                let name = self.name();
                in_time(name.as_str(), UPSTREAM_SYNC_TIME_OUT, global.sync(&request)).await
            }
            // Only a ledger below a root makes such requests.
            None => std::future::pending().await,
        }
    }

    async fn deliver(&self, delivery: Delivery) {
        // The next sync brings the reply as well, so a failure does no harm.
        let name = self.name();
        let _ = in_time(
            name.as_str(),
            TIMEOUT,
            self.ledgers.parent.deliver(&delivery),
        )
        .await;
    }

    fn handle_synced(&self, sync_loop: &mut SyncLoop, synced: SyncResult) {
        let now = self.rounds.now();
        let was_failing = sync_loop.is_failing();
        let (request, exchange) = match synced.result {
            Ok(synced) => synced,
            Err(error) => {
                sync_loop.handle_failure(synced.round, now);
                if !self.shared.stores.are_shared() {
                    // Another process has the journal and hands it over, or the journal is
                    // unreadable for good. Active visitors still pass.
                    self.rounds.note_predecessor();
                }
                self.note_failure(&error, was_failing);
                return;
            }
        };
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        if was_failing {
            tracing::info!(room = %self.name(), "store available again");
        }
        let joined = self.locked(|room, room_now| {
            if let Reply::Granted(lease_reply) = &exchange.reply {
                let other = lease_reply.other_clock;
                self.shared
                    .clocks
                    .note_node(self.id.as_str(), other, room_now);
            }
            room.handle_reply(exchange.reply.clone(), room_now);
            let jittered = |period: DurationMs| self.shared.random.jittered(period);
            let both = (&request, &exchange);
            sync_loop.handle_exchange(synced.round, both, room, jittered, now);
            self.view.store(Arc::new(View::of(room)));
            self.recent_admissions
                .lock()
                .note(room.snapshot(), room_now);
            self.note_history(room, room_now);
            let is_joined = room.has_parent_reply() && !request.is_leaving;
            is_joined.then(|| (room.in_touch_until(), room.revoked()))
        });
        if let Some((in_touch_until, revoked)) = joined {
            let revoked: Vec<_> = revoked.iter().collect();
            self.note_joined(in_touch_until, &revoked);
        }
    }

    /// Records that the parent knows this process, and with the next sync these revoked tickets. A
    /// successor may rely on this process from now on.
    fn note_joined(&self, in_touch_until: Timestamp, revoked: &[Revocation]) {
        if let Some(process) = &self.shared.process
            && let Err(error) = process.note_joined(self.id.as_str(), in_touch_until, revoked)
        {
            tracing::warn!(
                room = %self.name(),
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
                    tracing::info!(room = %self.name(), "global store available again");
                }
            }
            Err(error) => {
                self.counts
                    .failed_global_syncs
                    .fetch_add(1, Ordering::Relaxed);
                if sync_loop.handle_root_failure(number, now) == Change::Failed {
                    tracing::error!(
                        room = %self.name(),
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
                room = %self.name(),
                cause,
                "waiting for another process to release the journal; active visitors pass, \
                 nobody new is admitted"
            );
        } else {
            let remedy = if self.shared.stores.are_shared() {
                "check the server and [store]"
            } else {
                "check disk and data_dir"
            };
            tracing::error!(
                room = %self.name(),
                cause,
                "store unavailable: the room admits from its lease and then nobody; {remedy}"
            );
        }
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
        Err(elapsed) => Err(timed_out(room, elapsed)),
    }
}

fn timed_out(room: &str, elapsed: tokio::time::error::Elapsed) -> SyncError {
    SyncError::Store {
        room: room.to_owned(),
        source: StoreError::Unavailable {
            doing: "reach in time",
            store_name: format!("the ledger of room {room}"),
            source: Box::new(elapsed),
        },
    }
}
