//! What this node holds by itself: stops that its store has not taken yet.
//!
//! A stop holds here before anything is written down. Then the node tries to write it; if the store
//! does not answer, the stop stays, in memory and in the data folder, until the store takes it or
//! has a later command about the same subject.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::held_file::HeldFile;
use anteroom_config::Problems;
use anteroom_config::overrides::{
    Actor, HeldStop, HeldStops, OperatorCommand, Record as _, RoomOverrides, Stop,
};
use anteroom_room::time::Timestamp;
use anteroom_store::{ChangeError, StoreError, chain};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::RoomHandle;
use super::overrides::RoomCommandError;

/// A store that takes longer for a command does not answer. Below the 3 s that the admin address
/// waits, so that its answer can say what holds.
const WRITE_TIME_OUT: Duration = Duration::from_secs(2);
/// How long the data folder may take. A disk that hangs must not keep an answer from an operator.
const KEEP_TIME_OUT: Duration = Duration::from_millis(500);
/// How often a node tries to write down what it holds: as often as it reads what others said.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// What came of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommandOutcome {
    /// It is written down, and holds at all nodes within a second.
    Written,
    /// It holds at this node only, which writes it down when the store answers.
    Held {
        /// Whether it is in the data folder, so that a restart keeps it.
        is_kept: bool,
    },
    /// What this node held by itself has ended. What the store says is unchanged.
    Ended,
}

/// The stops, and where they are kept.
pub(super) struct Holding {
    held: Mutex<HeldStops>,
    file: Option<Arc<HeldFile>>,
    is_kept: AtomicBool,
    wake: Notify,
}

/// Why a held stop is not written down.
#[derive(Debug, thiserror::Error)]
enum DropError {
    /// The record has this command, or a later one about the same subject.
    #[error("the store has this command, or a later one about the same")]
    Decided,
    /// It is not allowed any more.
    #[error("it is not allowed any more")]
    NotAllowed(#[source] Problems),
}

impl Holding {
    /// What a process before this one left in `file`.
    pub(super) fn of(file: Option<HeldFile>) -> Self {
        let held = file.as_ref().map(HeldFile::read).unwrap_or_default();
        Self {
            is_kept: AtomicBool::new(!held.is_empty()),
            held: Mutex::new(held),
            file: file.map(Arc::new),
            wake: Notify::new(),
        }
    }

    /// What is held now.
    pub(super) fn held(&self) -> HeldStops {
        self.held.lock().clone()
    }

    /// Whether it is in the data folder.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// Lets go of what the record decides.
    pub(super) fn settle(&self, room: &str, overrides: &RoomOverrides) {
        let settled = self.held.lock().settle(overrides);
        for stop in &settled {
            let command = stop.stop.order().command();
            let newest = overrides.newest.as_ref().map(|newest| newest.what.as_str());
            if newest == Some(command.as_str()) {
                continue;
            }
            tracing::warn!(
                room,
                command,
                newest,
                version = overrides.version,
                "held stop ended: a later command about the same was given elsewhere"
            );
        }
        if !settled.is_empty() {
            self.wake.notify_one();
        }
    }
}

impl RoomHandle {
    /// Does what an operator says. A stop (pause, queue-all, message) holds at this node at once.
    /// All else holds when this returns. All other nodes follow within a second.
    ///
    /// If the store does not answer, a stop stays at this node, and a command that ends a stop ends
    /// the one that this node holds by itself.
    ///
    /// # Errors
    ///
    /// [`RoomCommandError`] if it is not allowed, and nothing is changed then; or if the store
    /// fails, and it is nothing that one node can do by itself.
    pub async fn obey(
        self: &Arc<Self>,
        order: &OperatorCommand,
        who: &Actor,
    ) -> Result<CommandOutcome, RoomCommandError> {
        let at = self.moment();
        let stop = self.hold(order, who, at)?;
        if stop.is_none() && !self.holding.held.lock().has_any_about(order) {
            self.write(order, who, at).await?;
            return Ok(CommandOutcome::Written);
        }
        match (self.write_in_time(order, who, at).await, stop) {
            (Ok(()), _) => Ok(CommandOutcome::Written),
            (Err(RoomCommandError::Refused(problems)), stop) => {
                self.change_held(|held| stop.iter().for_each(|stop| held.remove(stop)));
                Err(RoomCommandError::Refused(problems))
            }
            (Err(error), Some(_)) => {
                tracing::warn!(
                    room = %self.name,
                    command = order.command(),
                    cause = chain(&error),
                    "operator command held at this node: store unavailable"
                );
                Ok(self.keep().await)
            }
            (Err(error), None) => {
                tracing::warn!(
                    room = %self.name,
                    command = order.command(),
                    cause = chain(&error),
                    "operator command ended stops of this node only: store unavailable"
                );
                self.end(order).await;
                Ok(CommandOutcome::Ended)
            }
        }
    }

    /// Does what an operator says without waiting for the store: a stop holds when this returns,
    /// and is written down when the store answers.
    ///
    /// # Errors
    ///
    /// [`RoomCommandError`] if it is not allowed, or nothing that one node can do by itself.
    pub async fn obey_here(
        self: &Arc<Self>,
        order: &OperatorCommand,
        who: &Actor,
    ) -> Result<CommandOutcome, RoomCommandError> {
        if self.hold(order, who, self.moment())?.is_some() {
            tracing::warn!(
                room = %self.name,
                command = order.command(),
                token = who.token,
                user = who.user,
                from = who.address,
                "operator command holds at this node"
            );
            return Ok(self.keep().await);
        }
        if !self.holding.held.lock().has_any_about(order) {
            return Err(RoomCommandError::NotHere);
        }
        self.end(order).await;
        tracing::warn!(
            room = %self.name,
            command = order.command(),
            token = who.token,
            user = who.user,
            from = who.address,
            "operator command ended stops of this node"
        );
        Ok(CommandOutcome::Ended)
    }

    /// When a command is given: later than all that this node has heard of.
    fn moment(&self) -> Timestamp {
        let known = self.said();
        let newest = known.newest().map_or(0, |newest| newest.at + 1);
        Timestamp(self.shared.clock.wall().0.max(newest))
    }

    /// Lets a stop hold at once; `None` if `order` is none.
    fn hold(
        &self,
        order: &OperatorCommand,
        who: &Actor,
        at: Timestamp,
    ) -> Result<Option<HeldStop>, RoomCommandError> {
        let Some(stop) = Stop::of(order) else {
            return Ok(None);
        };
        let settings = self.settings.load_full();
        let allowed = settings.overrides.after(order, &settings.file, who, at);
        allowed.map_err(RoomCommandError::Refused)?;
        let stop = HeldStop {
            stop,
            who: who.clone(),
            at: at.0,
        };
        self.change_held(|held| held.add(stop.clone()));
        Ok(Some(stop))
    }

    /// Changes what is held, and lets what follows hold at once.
    fn change_held(&self, change: impl FnOnce(&mut HeldStops)) {
        let turn = self.changing.lock();
        change(&mut self.holding.held.lock());
        let settings = self.settings.load_full();
        self.apply_settings(Arc::clone(&settings.file), Arc::clone(&settings.said));
        drop(turn);
    }

    async fn end(self: &Arc<Self>, order: &OperatorCommand) {
        self.change_held(|held| held.end(order));
        self.keep().await;
    }

    /// Writes in a task of its own, for what the store takes too late is to hold here as well.
    async fn write_in_time(
        self: &Arc<Self>,
        order: &OperatorCommand,
        who: &Actor,
        at: Timestamp,
    ) -> Result<(), RoomCommandError> {
        let (by, order, who) = (Arc::clone(self), order.clone(), who.clone());
        let writing = tokio::spawn(async move { by.write(&order, &who, at).await });
        let failed: Box<dyn Error + Send + Sync> = match timeout(WRITE_TIME_OUT, writing).await {
            Ok(Ok(written)) => return written,
            Ok(Err(ended)) => Box::new(ended),
            Err(late) => Box::new(late),
        };
        Err(RoomCommandError::Away(ChangeError::Store(
            StoreError::Unavailable {
                doing: "write within two seconds",
                place: format!("the settings of room {}", self.name),
                source: failed,
            },
        )))
    }

    /// Sees to it that what is held outlasts this process, and is written down.
    async fn keep(self: &Arc<Self>) -> CommandOutcome {
        let is_kept = self.save().await;
        self.holding.wake.notify_one();
        CommandOutcome::Held { is_kept }
    }

    async fn save(self: &Arc<Self>) -> bool {
        let Some(file) = self.holding.file.clone() else {
            return false;
        };
        let by = Arc::clone(self);
        let saving = spawn_blocking(move || {
            file.update(|before, found| {
                if before != found {
                    let room = &by.name;
                    tracing::warn!(%room, "another process has changed stops of this node");
                    by.change_held(|held| held.follow(before, found));
                }
                by.holding.held()
            })
        });
        let saved = match timeout(KEEP_TIME_OUT, saving).await {
            Ok(Ok(Ok(()))) => true,
            Ok(Ok(Err(error))) => {
                let room = &self.name;
                tracing::error!(%room, %error, "held stops not kept in the data folder");
                false
            }
            Ok(Err(_)) | Err(_) => {
                tracing::error!(room = %self.name, "held stops not kept: the disk does not answer");
                false
            }
        };
        self.holding.is_kept.store(saved, Ordering::Relaxed);
        saved
    }

    /// Looks whether another process on the data folder has changed what is held.
    pub(crate) fn look_at_held(&self) {
        self.holding.wake.notify_one();
    }

    /// Writes down what is held as soon as the store takes it, until `stop`.
    pub(crate) async fn write_held(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let is_held = !self.holding.held.lock().is_empty();
            tokio::select! {
                _ = stop.changed() => return,
                () = self.holding.wake.notified() => {}
                () = sleep(RETRY_EVERY), if is_held => {}
            }
            tokio::select! {
                _ = stop.changed() => return,
                () = self.write_all_held() => {}
            }
        }
    }

    async fn write_all_held(self: &Arc<Self>) {
        // What another process on the data folder was told is to be obeyed here as well.
        self.save().await;
        for stop in self.holding.held().iter() {
            self.write_one_held(stop).await;
        }
        // What was settled meanwhile goes from the folder as well.
        self.save().await;
    }

    async fn write_one_held(&self, stop: &HeldStop) {
        let order = stop.stop.order();
        let file = Arc::clone(&self.settings.load().file);
        let change = |said: &RoomOverrides| {
            if stop.is_decided_by(said) {
                return Err(DropError::Decided);
            }
            let next = said.after(&order, &file, &stop.who, Timestamp(stop.at));
            next.map_err(DropError::NotAllowed)
        };
        let changing = self.bulletin.hearing.change(self, change);
        match timeout(WRITE_TIME_OUT, changing).await {
            Ok(Ok(next)) => {
                tracing::warn!(
                    room = %self.name,
                    version = next.version,
                    command = order.command(),
                    "held stop written down: it holds at all nodes"
                );
                self.rounds.hurry();
            }
            Ok(Err(ChangeError::Refused(reason))) => {
                tracing::warn!(
                    room = %self.name,
                    command = order.command(),
                    cause = chain(&reason),
                    "held stop dropped"
                );
                // What holds instead, before this does not hold any more.
                if let Err(error) = self.read_overrides().await {
                    tracing::debug!(room = %self.name, cause = chain(&error), "the settings were \
                        not read");
                }
                self.change_held(|held| held.remove(stop));
            }
            Ok(Err(error)) => {
                tracing::debug!(room = %self.name, cause = chain(&error), "held stop not written \
                    yet");
            }
            Err(_) => tracing::debug!(room = %self.name, "held stop not written yet: time-out"),
        }
    }
}
