//! What operators say while the room runs: applied here, kept in the store, heard of by every node
//! within a second.
//!
//! On a store of its own a node hears only itself. On one that others share it reads the record a
//! little more than once a second while something happens in the room; and where nothing did, it
//! reads before it decides about the first who comes. So nobody new is decided about by what is
//! older than a second, as long as the store answers, and an idle room costs no call. Whether a
//! change is allowed is judged where it is written down; the file's configuration stays as it is,
//! so that a reset finds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anteroom_config::overrides::{
    Actor, Log, OperatorCommand, Record as _, RoomOverrides, Shown, ShownHeld,
};
use anteroom_config::{Changed, Problems, RoomConfig};
use anteroom_room::room::Room;
use anteroom_room::room::syncing::SYNC_PERIOD;
use anteroom_room::room::view::View;
use anteroom_room::sync_loop::WaitDeadline;
use anteroom_room::time::Timestamp;
use anteroom_store::{ChangeError, OverrideFeed, OverrideListener, StoreError, SyncError, chain};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::asking::patience_of_a_visitor;
use super::wall_time::in_room_time;
use super::{RoomHandle, Settings};

/// Nobody new is decided about by what is older than this.
const FRESH: Duration = Duration::from_secs(1);
/// The record is read this often: sooner than what is known grows old, by a trip to a far store, so
/// that nobody waits for a reading while the room is busy.
const READ_EVERY: Duration = Duration::from_millis(750);
/// A room that syncs more seldom than this many periods is idle: nobody is inside, here or
/// elsewhere.
const BUSY_PERIODS: u64 = 4;

/// Why something that an operator said was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoomCommandError {
    /// It is not allowed; nothing was changed.
    #[error("that cannot be done")]
    Refused(#[source] Problems),
    /// It could not be written down; nothing is known to have changed.
    #[error("cannot write down what an operator said")]
    Away(#[source] ChangeError<Problems>),
    /// This node holds no stop by itself that it would end.
    #[error("this node holds nothing by itself that this would end")]
    NotHere,
}

/// What this node knows of what was said.
pub(super) struct OverrideState {
    pub(super) hearing: OverrideFeed<RoomOverrides>,
    /// When the newest answer was asked for; `None` before the first.
    asked_at: watch::Sender<Option<Instant>>,
    wake: Notify,
    reads: AtomicU64,
}

impl OverrideState {
    pub(super) fn new(hearing: OverrideFeed<RoomOverrides>) -> Self {
        Self {
            hearing,
            asked_at: watch::Sender::new(None),
            wake: Notify::new(),
            reads: AtomicU64::new(0),
        }
    }

    fn is_known(&self) -> bool {
        self.asked_at.borrow().is_some() && self.hearing.has_heard_copy()
    }

    fn is_fresh(&self, now: Instant) -> bool {
        let asked_at = *self.asked_at.borrow();
        asked_at.is_some_and(|at| {
            !self.hearing.are_others() || now.saturating_duration_since(at) <= FRESH
        })
    }
}

/// What holds in a room, and where it comes from.
impl Settings {
    /// Before anything is known of what was said.
    pub(super) fn of_file(file: Arc<RoomConfig>) -> Self {
        let said: Arc<RoomOverrides> = Arc::default();
        let changed = said.applied_to(&file);
        Self::of(changed, file, Arc::clone(&said), said)
    }

    pub(super) fn of(
        changed: Changed,
        file: Arc<RoomConfig>,
        said: Arc<RoomOverrides>,
        overrides: Arc<RoomOverrides>,
    ) -> Self {
        let mut config = changed.config;
        config.rules.queue_all |= overrides.pause.is_some();
        Self::new(config, file, said, overrides)
    }
}

impl RoomHandle {
    /// What an operator says on the page, and whether it paused the room.
    #[must_use]
    pub fn overrides(&self) -> Arc<RoomOverrides> {
        Arc::clone(&self.settings.load().overrides)
    }

    /// Whether the room is switched off, as far as this node has heard within a second.
    pub async fn is_suspended(&self) -> bool {
        if self.settings.load().config.suspended {
            self.hear_overrides().await;
        }
        self.settings.load().config.suspended
    }

    /// What holds, and which of it comes from the file.
    #[must_use]
    pub fn shown(&self) -> Shown {
        let settings = self.settings.load();
        let held = ShownHeld::of(&self.holding.held(), self.holding.is_kept());
        Shown {
            held,
            ..Shown::of(&settings.overrides, &settings.file)
        }
    }

    /// What is written down, as far as this node has heard.
    pub(super) fn said(&self) -> Arc<RoomOverrides> {
        Arc::clone(&self.settings.load().said)
    }

    /// Whether the store of what operators say did not answer the newest reading. It is the one
    /// that lends what the limits allow.
    pub(super) fn is_root_store_unavailable(&self) -> bool {
        self.bulletin.hearing.are_others() && self.bulletin.hearing.is_failing()
    }

    /// Makes sure that what is known is at most a second old, as long as the store answers within
    /// 250 ms. While it does not, nobody waits for it.
    pub async fn hear_overrides(&self) {
        let bulletin = &self.bulletin;
        let now = Instant::now();
        if bulletin.is_fresh(now) || bulletin.hearing.is_failing() {
            return;
        }
        bulletin.wake.notify_one();
        let mut asked_at = bulletin.asked_at.subscribe();
        let is_newer = |at: &Option<Instant>| at.is_some_and(|at| at + FRESH >= now);
        // Out of patience: what is known holds.
        let _ = timeout_at(now + patience_of_a_visitor(), asked_at.wait_for(is_newer)).await;
    }

    /// Whether what is known is at most a second old.
    pub(super) fn are_overrides_fresh(&self) -> bool {
        self.bulletin.is_fresh(Instant::now())
    }

    /// Hears what was said, and asks the parent for a slot meanwhile where none is here. Returns
    /// whether it is worth asking the parent (again).
    pub(super) async fn hear_and_ask(&self, patience: &mut WaitDeadline) -> bool {
        let wants_slot = self.locked(|room, now| !is_busy(room) && room.wish_for_slot(now));
        if !wants_slot {
            self.hear_overrides().await;
            return true;
        }
        let ((), is_worth_it) = tokio::join!(self.hear_overrides(), self.ask_parent(patience));
        is_worth_it
    }

    /// Reads what was said for as long as others may say something, until `stop`.
    pub(crate) async fn watch_overrides(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        if !self.bulletin.hearing.are_others() {
            return;
        }
        let mut next_at = Instant::now();
        while !*stop.borrow() {
            tokio::select! {
                _ = stop.changed() => return,
                () = self.reading_is_due(next_at) => {}
            }
            // By tries and not by what came of them: a store that is away is asked no more often.
            next_at = Instant::now() + READ_EVERY;
            if let Err(error) = self.read_overrides().await {
                tracing::debug!(room = %self.name, cause = chain(&error), "the settings were not \
                    read");
            }
        }
    }

    /// Again and again while the room is busy, or the newest reading failed: nobody asks for one
    /// then. Else when somebody asks for it.
    async fn reading_is_due(&self, mut next_at: Instant) {
        loop {
            tokio::select! {
                // Who asked while the newest answer was on its way has it now.
                () = self.bulletin.wake.notified() => if !self.bulletin.is_fresh(Instant::now()) {
                    return;
                },
                () = sleep_until(next_at) => {
                    if self.bulletin.hearing.is_failing() || is_busy(&self.room.lock()) {
                        return;
                    }
                    next_at = Instant::now() + READ_EVERY;
                }
            }
        }
    }

    /// Learns what was said, if that is not known yet: nobody is let in before. While the root's
    /// store is away, what this data center has heard of will do.
    pub(super) async fn learn_overrides(&self) -> Result<(), SyncError> {
        let OverrideState {
            hearing, asked_at, ..
        } = &self.bulletin;
        if self.bulletin.is_known() {
            return Ok(());
        }
        // The copy first, and not without it: the world may have lost what it says. It lies where
        // this room's ledger does, so there is no round without that store either.
        let mut heard = hearing.read_copy(self).await;
        if heard.is_ok() {
            heard = self.read_overrides().await;
            if heard.is_err() && hearing.has_copy() {
                asked_at.send_replace(Some(Instant::now()));
                heard = Ok(());
            }
        }
        heard.map_err(|source| SyncError::Store {
            room: self.name.clone(),
            source,
        })
    }

    pub(super) async fn read_overrides(&self) -> Result<(), StoreError> {
        let asked_at = Instant::now();
        self.bulletin.reads.fetch_add(1, Ordering::Relaxed);
        self.bulletin.hearing.read(self).await?;
        self.bulletin.asked_at.send_replace(Some(asked_at));
        Ok(())
    }

    /// Applies a changed configuration at once. What operators said while the room runs still wins.
    pub(crate) fn handle_config(&self, file: RoomConfig) {
        let turn = self.changing.lock();
        self.apply_settings(Arc::new(file), self.said());
        drop(turn);
    }

    /// Lets settings hold at once; whoever calls this holds `changing`.
    pub(super) fn apply_settings(&self, file: Arc<RoomConfig>, said: Arc<RoomOverrides>) {
        let held = self.holding.held();
        let overrides = if held.is_empty() {
            Arc::clone(&said)
        } else {
            Arc::new(held.over(&said, &file))
        };
        let changed = overrides.applied_to(&file);
        for problem in &changed.problems {
            tracing::error!(
                "{problem}; what an operator set does not fit the file and does not hold"
            );
        }
        let settings = Settings::of(changed, file, said, overrides);
        let rules = in_room_time(settings.config.rules, &*self.shared.clock);
        let is_other_rules = {
            let mut room = self.room.lock();
            let is_other = *room.rules() != rules;
            if is_other {
                room.handle_rules(rules);
                self.view.store(Arc::new(View::of(&room)));
            }
            is_other
        };
        self.settings.store(Arc::new(settings));
        if is_other_rules {
            self.rounds.hurry();
        }
    }

    /// Writes down what an operator says. It holds at this node when this returns.
    pub(super) async fn write(
        &self,
        order: &OperatorCommand,
        who: &Actor,
        now: Timestamp,
    ) -> Result<(), RoomCommandError> {
        let file = Arc::clone(&self.settings.load().file);
        let change = |before: &RoomOverrides| before.after(order, &file, who, now);
        let next = match self.bulletin.hearing.change(self, change).await {
            Ok(next) => next,
            Err(ChangeError::Refused(problems)) => return Err(RoomCommandError::Refused(problems)),
            Err(error) => return Err(RoomCommandError::Away(error)),
        };
        if let Some(entry) = &next.newest {
            tracing::warn!(
                room = %self.name,
                version = entry.version,
                what = entry.what,
                token = entry.who.token,
                user = entry.who.user,
                from = entry.who.address,
                changes = serde_json::to_string(&entry.changes).unwrap_or_default(),
                "an operator changed the room"
            );
        }
        self.rounds.hurry();
        Ok(())
    }

    /// How often this node read what was said.
    #[must_use]
    pub fn reads_of_overrides(&self) -> u64 {
        self.bulletin.reads.load(Ordering::Relaxed)
    }

    /// Who changed what, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn log_of_overrides(&self) -> Result<Log, StoreError> {
        self.bulletin.hearing.log().await
    }
}

impl OverrideListener<RoomOverrides> for RoomHandle {
    fn known(&self) -> Arc<RoomOverrides> {
        self.said()
    }

    fn adopt(&self, overrides: RoomOverrides) {
        let turn = self.changing.lock();
        let settings = self.settings.load_full();
        if !overrides.is_newer_than(&settings.said) {
            return;
        }
        tracing::info!(
            room = %self.name,
            version = overrides.version,
            what = overrides.newest.as_ref().map(|newest| newest.what.as_str()),
            "an operator's settings take effect here"
        );
        self.holding.settle(&self.name, &overrides);
        self.apply_settings(Arc::clone(&settings.file), Arc::new(overrides));
        drop(turn);
    }
}

/// Whether somebody is inside, here or elsewhere, or waits here, or holds what may be handed out.
fn is_busy(room: &Room) -> bool {
    room.sync_period().0 <= SYNC_PERIOD.0 * BUSY_PERIODS
}
