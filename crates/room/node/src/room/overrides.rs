//! Overrides of a room: applied here, kept in the store, in effect at every node within a second.
//!
//! On a shared store a node reads the record a little more than once a second while the room is
//! busy. An idle room reads it only before the decision about its next visitor, and otherwise sends
//! the store no requests. So while the store is available, no new visitor is decided about by
//! overrides older than a second. The node that writes a change checks whether it is allowed. The
//! file's configuration stays unchanged for a reset.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anteroom_config::overrides::{
    Actor, Log, OperatorCommand, PendingStopView, Record as _, RoomOverrides, RoomOverridesView,
};
use anteroom_config::{Problem, Problems, RoomConfig};
use anteroom_room::id::VisitorId;
use anteroom_room::room::Room;
use anteroom_room::room::syncing::SYNC_PERIOD;
use anteroom_room::room::view::View;
use anteroom_room::rules::Rules;
use anteroom_room::sync_loop::WaitDeadline;
use anteroom_room::time::Timestamp;
use anteroom_store::{ChangeError, OverrideFeed, OverrideListener, StoreError, SyncError, chain};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::shared_sync::visitor_timeout;
use super::{RoomHandle, Settings, events};

/// Greatest age of overrides in a decision about a new visitor.
const FRESH: Duration = Duration::from_secs(1);
/// Interval of reads of the record. It is shorter than [`FRESH`] by a round trip to a far store, so
/// that no visitor waits for a read while the room is busy.
const READ_INTERVAL: Duration = Duration::from_millis(750);
/// Sync interval, in periods, above which a room is idle: it has no active visitors at any node.
const BUSY_PERIODS: u64 = 4;

/// Error of an operator command about a room.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoomCommandError {
    /// The command is not allowed. Nothing was changed.
    #[error("the command is not allowed")]
    Refused(#[source] Problems),
    /// The command could not be written to the store. Nothing is known to have changed.
    #[error("cannot write the command to the store")]
    Away(#[source] ChangeError<Problems>),
    /// This node has no held stop that the command would end.
    #[error("this node has no held stop that the command would end")]
    NotHere,
}

/// Feed of the room's overrides, and the age of what this node knows.
pub(super) struct OverrideState {
    pub(super) feed: OverrideFeed<RoomOverrides>,
    /// Start of the newest successful read; `None` before the first.
    read_at: watch::Sender<Option<Instant>>,
    wake: Notify,
    reads: AtomicU64,
}

impl OverrideState {
    pub(super) fn new(feed: OverrideFeed<RoomOverrides>) -> Self {
        Self {
            feed,
            read_at: watch::Sender::new(None),
            wake: Notify::new(),
            reads: AtomicU64::new(0),
        }
    }

    fn is_known(&self) -> bool {
        self.read_at.borrow().is_some() && self.feed.was_copy_read()
    }

    fn is_fresh(&self, now: Instant) -> bool {
        let read_at = *self.read_at.borrow();
        read_at
            .is_some_and(|at| !self.feed.is_shared() || now.saturating_duration_since(at) <= FRESH)
    }
}

impl RoomHandle {
    /// Returns the overrides in effect.
    #[must_use]
    pub fn overrides(&self) -> Arc<RoomOverrides> {
        Arc::clone(&self.settings.load().evaluation.overrides)
    }

    /// Whether the room is switched off, by overrides at most a second old.
    pub async fn is_suspended(&self) -> bool {
        if self.settings.load().config.suspended {
            self.refresh_overrides().await;
        }
        self.settings.load().config.suspended
    }

    /// Returns the values in effect and those of the file.
    #[must_use]
    pub fn shown(&self) -> RoomOverridesView {
        let settings = self.settings.load();
        let held = PendingStopView::of(&self.held.stops(), self.held.is_kept());
        RoomOverridesView {
            held,
            ..RoomOverridesView::of(
                &settings.evaluation.overrides,
                &settings.file,
                &settings.evaluation.effective,
                events::clocks(&*self.shared.clock).wall,
            )
        }
    }

    /// Returns the mistakes that a command would have; nothing is changed.
    #[must_use]
    pub fn mistakes_in(&self, command: &OperatorCommand) -> Vec<Problem> {
        let settings = self.settings.load();
        let overrides = &settings.evaluation.overrides;
        let who = Actor::default();
        let after = overrides.after(command, &settings.file, &who, self.wall_now());
        after.err().map_or_else(Vec::new, |problems| problems.0)
    }

    /// Returns the values that will be in effect at a time, by the wall clock, if nobody changes
    /// anything.
    #[must_use]
    pub fn shown_at(&self, at: Timestamp) -> RoomOverridesView {
        let settings = self.settings.load();
        let overrides = &settings.evaluation.overrides;
        let then = anteroom_config::effective(&settings.file, overrides, at);
        RoomOverridesView::of(overrides, &settings.file, &then, at)
    }

    /// Returns the overrides in the store, as far as this node knows.
    pub(super) fn stored_overrides(&self) -> Arc<RoomOverrides> {
        Arc::clone(&self.settings.load().stored)
    }

    /// Whether the newest read of the main record failed. Its store is that of the root ledger.
    pub(super) fn is_root_store_unavailable(&self) -> bool {
        self.override_state.feed.is_shared() && self.override_state.feed.is_failing()
    }

    /// Makes sure that the known overrides are at most a second old, if the store replies within
    /// 250 ms. While reads fail, no visitor waits.
    pub async fn refresh_overrides(&self) {
        let override_state = &self.override_state;
        let now = Instant::now();
        if override_state.is_fresh(now) || override_state.feed.is_failing() {
            return;
        }
        override_state.wake.notify_one();
        let mut read_at = override_state.read_at.subscribe();
        let is_newer = |at: &Option<Instant>| at.is_some_and(|at| at + FRESH >= now);
        // After the timeout, the known overrides stay in effect.
        let _ = timeout_at(now + visitor_timeout(), read_at.wait_for(is_newer)).await;
    }

    /// Whether the known overrides are at most a second old.
    pub(super) fn are_overrides_fresh(&self) -> bool {
        self.override_state.is_fresh(Instant::now())
    }

    /// Refreshes the overrides, and meanwhile requests a slot from the parent if there is none
    /// here. Returns whether a sync with the parent may help.
    pub(super) async fn refresh_and_sync(
        &self,
        visitor: VisitorId,
        deadline: &mut WaitDeadline,
    ) -> bool {
        let wants_slot = self.locked(|room, now| !is_busy(room) && room.demand_slot(visitor, now));
        if !wants_slot {
            self.refresh_overrides().await;
            return true;
        }
        let refreshing = self.refresh_overrides();
        let ((), may_help) = tokio::join!(refreshing, self.sync_with_parent(deadline));
        may_help
    }

    /// Reads the overrides while other processes may change them, until `stop`.
    pub(crate) async fn watch_overrides(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        if !self.override_state.feed.is_shared() {
            return;
        }
        let mut next_at = Instant::now();
        while !*stop.borrow() {
            tokio::select! {
                _ = stop.changed() => return,
                () = self.read_due(next_at) => {}
            }
            // From the attempt and not from its end: a failing store gets no more requests.
            next_at = Instant::now() + READ_INTERVAL;
            if let Err(error) = self.read_overrides().await {
                tracing::debug!(room = %self.name(), cause = chain(&error), "overrides not read");
            }
        }
    }

    /// Waits until a read is due: at intervals while the room is busy or the newest read failed,
    /// otherwise when a visitor needs one.
    async fn read_due(&self, mut next_at: Instant) {
        loop {
            tokio::select! {
                // A read that was in flight may have served the visitor already.
                () = self.override_state.wake.notified() => if !self.are_overrides_fresh() {
                    return;
                },
                () = sleep_until(next_at) => {
                    if self.override_state.feed.is_failing() || is_busy(&self.room.lock()) {
                        return;
                    }
                    next_at = Instant::now() + READ_INTERVAL;
                }
            }
        }
    }

    /// Reads the overrides for the first time; no visitor is admitted before. While the root's
    /// store is unavailable, this data center's copy suffices.
    pub(super) async fn learn_overrides(&self) -> Result<(), SyncError> {
        let OverrideState { feed, read_at, .. } = &self.override_state;
        if self.override_state.is_known() {
            return Ok(());
        }
        // The copy is required, because the main record may be lost. It is in the store of this
        // room's ledger, without which there is no sync either.
        let mut read = feed.read_copy(self).await;
        if read.is_ok() {
            read = self.read_overrides().await;
            if read.is_err() && feed.has_copy() {
                read_at.send_replace(Some(Instant::now()));
                read = Ok(());
            }
        }
        read.map_err(|source| SyncError::Store {
            room: self.name().to_string(),
            source,
        })
    }

    pub(super) async fn read_overrides(&self) -> Result<(), StoreError> {
        let started_at = Instant::now();
        self.override_state.reads.fetch_add(1, Ordering::Relaxed);
        self.override_state.feed.read(self).await?;
        self.override_state.read_at.send_replace(Some(started_at));
        Ok(())
    }

    /// Applies a changed configuration at once. Overrides still win over it.
    pub(crate) fn handle_config(&self, file: RoomConfig) {
        let guard = self.changing.lock();
        // A change of another room brings this one as it is.
        if *self.settings.load().file != file {
            self.apply_settings(Arc::new(file), self.stored_overrides());
        }
        drop(guard);
    }

    /// Puts settings into effect at once. The caller has locked `changing`.
    pub(super) fn apply_settings(&self, file: Arc<RoomConfig>, stored: Arc<RoomOverrides>) {
        let held = self.held.stops();
        let overrides = if held.is_empty() {
            RoomOverrides::clone(&stored)
        } else {
            held.applied_over(&stored, &file)
        };
        let clocks = events::clocks(&*self.shared.clock);
        let mut phases = self.events.phases.lock();
        let overrides = (overrides, &stored.events);
        let before = &self.settings.load().evaluation.effective;
        let evaluation = phases.evaluate(&file, overrides, before, clocks);
        for problem in &evaluation.effective.problems {
            tracing::error!("{problem}; the override does not match the file and is ignored");
        }
        let mut settings = Settings::of(file, stored, evaluation);
        let is_other_rules = {
            let mut room = self.room.lock();
            let applied = *room.rules();
            let found = phases.rules(&settings.evaluation, &room, clocks);
            let (wanted, rules) = (found.wanted, found.in_force);
            if rules.queueing_method != wanted.queueing_method && applied != rules {
                tracing::info!(
                    room = %self.name(),
                    "the room has a queue until nobody waits, and lets everybody pass then"
                );
            }
            let wall_rules = settings.evaluation.effective.config.rules;
            Arc::make_mut(&mut settings.config).rules = Rules {
                // People read wall-clock time.
                opens_at: wall_rules.opens_at,
                holds_from: wall_rules.holds_from,
                ..rules
            };
            if applied != rules {
                room.handle_rules(rules, self.shared.clock.now());
                self.view.store(Arc::new(View::of(&room)));
            }
            applied != rules
        };
        drop(phases);
        self.settings.store(Arc::new(settings));
        if is_other_rules {
            self.rounds.request_sync();
        }
    }

    /// Writes a command to the store. It is in effect at this node when this returns.
    pub(super) async fn write(
        &self,
        command: &OperatorCommand,
        who: &Actor,
        now: Timestamp,
    ) -> Result<(), RoomCommandError> {
        let file = Arc::clone(&self.settings.load().file);
        let change = |before: &RoomOverrides, _| before.after(command, &file, who, now);
        let next = match self.override_state.feed.change(self, change).await {
            Ok(next) => next,
            Err(ChangeError::Rejected(problems)) => {
                return Err(RoomCommandError::Refused(problems));
            }
            Err(error) => return Err(RoomCommandError::Away(error)),
        };
        if let Some(entry) = &next.newest {
            tracing::warn!(
                room = %self.name(),
                version = entry.version,
                what = entry.what,
                token = entry.who.token,
                user = entry.who.user,
                from = entry.who.address,
                changes = serde_json::to_string(&entry.changes).unwrap_or_default(),
                "an operator changed the room"
            );
        }
        self.rounds.request_sync();
        Ok(())
    }

    /// Counts reads of the overrides by this node.
    #[must_use]
    pub fn override_reads(&self) -> u64 {
        self.override_state.reads.load(Ordering::Relaxed)
    }

    /// Returns the audit log, oldest entry first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn override_log(&self) -> Result<Log, StoreError> {
        self.override_state.feed.log().await
    }
}

impl OverrideListener<RoomOverrides> for RoomHandle {
    fn known(&self) -> Arc<RoomOverrides> {
        self.stored_overrides()
    }

    fn adopt(&self, overrides: RoomOverrides) {
        let guard = self.changing.lock();
        let settings = self.settings.load_full();
        if !overrides.is_newer_than(&settings.stored) {
            return;
        }
        tracing::info!(
            room = %self.name(),
            version = overrides.version,
            what = overrides.newest.as_ref().map(|newest| newest.what.as_str()),
            "overrides take effect at this node"
        );
        self.held.settle(settings.file.name.as_str(), &overrides);
        self.apply_settings(Arc::clone(&settings.file), Arc::new(overrides));
        drop(guard);
    }
}

/// Whether the room has active visitors at any node, waiting visitors here, or unused slots here.
fn is_busy(room: &Room) -> bool {
    room.sync_period().0 <= SYNC_PERIOD.0 * BUSY_PERIODS
}
