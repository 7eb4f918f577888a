//! Held stops: operator commands in effect at this node that are not in its store yet.
//!
//! A stop takes effect here before it is written. Then the node writes it to the store. If the
//! store is unavailable, the stop stays in memory and in the data folder, until the store accepts
//! it or has a later command about the same subject.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::held_commands_file::HeldFile;
use anteroom_config::Problems;
use anteroom_config::overrides::{
    Actor, OperatorCommand, PendingStop, PendingStops, Record as _, RoomOverrides, Stop,
};
use anteroom_room::time::Timestamp;
use anteroom_store::{ChangeError, StoreError, chain};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::RoomHandle;
use super::overrides::RoomCommandError;

/// Timeout of writing a command to the store. It is below the 3 s of the admin address, so that its
/// response can say what is in effect.
const WRITE_TIME_OUT: Duration = Duration::from_secs(2);
/// Timeout of writing to the data folder. A disk that hangs must not delay the response to an
/// operator.
const SAVE_TIME_OUT: Duration = Duration::from_millis(500);
/// Interval of attempts at writing held stops to the store: that of reads of overrides.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Outcome of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommandOutcome {
    /// The command is in the store, and in effect at all nodes within a second.
    Written,
    /// The command is in effect at this node only, until the store is available again.
    Held {
        /// Whether it is in the data folder, so that it survives a restart.
        is_kept: bool,
    },
    /// The command ended held stops of this node. The store is unchanged.
    Ended,
}

/// Held stops of a room, and their file.
pub(super) struct HeldState {
    stops: Mutex<PendingStops>,
    file: Option<Arc<HeldFile>>,
    is_kept: AtomicBool,
    wake: Notify,
}

/// Reason why a held stop is dropped.
#[derive(Debug, thiserror::Error)]
enum DropError {
    /// The record has this command, or a later one about the same subject.
    #[error("the store has this command or a later one about the same subject")]
    Superseded,
    /// The command is no longer allowed.
    #[error("the command is no longer allowed")]
    NotAllowed(#[source] Problems),
}

impl HeldState {
    /// Reads the held stops of an earlier process from `file`.
    pub(super) fn of(file: Option<HeldFile>) -> Self {
        let held = file.as_ref().map(HeldFile::read).unwrap_or_default();
        Self {
            is_kept: AtomicBool::new(!held.is_empty()),
            stops: Mutex::new(held),
            file: file.map(Arc::new),
            wake: Notify::new(),
        }
    }

    /// Returns the present held stops.
    pub(super) fn stops(&self) -> PendingStops {
        self.stops.lock().clone()
    }

    /// Whether they are in the data folder.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// Drops the stops that the record has, or has later commands about.
    pub(super) fn settle(&self, room: &str, overrides: &RoomOverrides) {
        let settled = self.stops.lock().remove_decided(overrides);
        for stop in &settled {
            let command = stop.stop.command().to_text();
            let newest = overrides.newest.as_ref().map(|newest| newest.what.as_str());
            if newest == Some(command.as_str()) {
                continue;
            }
            tracing::warn!(
                room,
                command,
                newest,
                version = overrides.version,
                "held stop ended: the store has a later command about the same subject"
            );
        }
        if !settled.is_empty() {
            self.wake.notify_one();
        }
    }
}

impl RoomHandle {
    /// Performs an operator command. A stop (pause, queue-all, message) takes effect at this node
    /// at once, other commands when this returns. All other nodes follow within a second.
    ///
    /// If the store is unavailable, a stop stays in effect at this node, and a command that ends a
    /// stop ends the held one of this node.
    ///
    /// # Errors
    ///
    /// [`RoomCommandError`] if the command is not allowed. Nothing is changed then. Also if the
    /// store fails and the command cannot take effect at one node.
    pub async fn execute(
        self: &Arc<Self>,
        command: &OperatorCommand,
        who: &Actor,
    ) -> Result<CommandOutcome, RoomCommandError> {
        let at = self.command_time();
        let stop = self.apply_stop(command, who, at)?;
        if stop.is_none() && !self.held.stops.lock().has_any_about(command) {
            self.write(command, who, at).await?;
            return Ok(CommandOutcome::Written);
        }
        match (self.write_in_time(command, who, at).await, stop) {
            (Ok(()), _) => Ok(CommandOutcome::Written),
            (Err(RoomCommandError::Refused(problems)), stop) => {
                self.change_held(|held| stop.iter().for_each(|stop| held.remove(stop)));
                Err(RoomCommandError::Refused(problems))
            }
            (Err(error), Some(_)) => {
                tracing::warn!(
                    room = %self.name(),
                    command = command.to_text(),
                    cause = chain(&error),
                    "operator command held at this node: store unavailable"
                );
                Ok(self.keep().await)
            }
            (Err(error), None) => {
                tracing::warn!(
                    room = %self.name(),
                    command = command.to_text(),
                    cause = chain(&error),
                    "operator command ended stops of this node only: store unavailable"
                );
                self.end(command).await;
                Ok(CommandOutcome::Ended)
            }
        }
    }

    /// Performs an operator command without waiting for the store: a stop is in effect when this
    /// returns, and is written to the store later.
    ///
    /// # Errors
    ///
    /// [`RoomCommandError`] if the command is not allowed, or cannot take effect at one node.
    pub async fn execute_here(
        self: &Arc<Self>,
        command: &OperatorCommand,
        who: &Actor,
    ) -> Result<CommandOutcome, RoomCommandError> {
        if self
            .apply_stop(command, who, self.command_time())?
            .is_some()
        {
            tracing::warn!(
                room = %self.name(),
                command = command.to_text(),
                token = who.token,
                user = who.user,
                from = who.address,
                "operator command in effect at this node only"
            );
            return Ok(self.keep().await);
        }
        if !self.held.stops.lock().has_any_about(command) {
            return Err(RoomCommandError::NotHere);
        }
        self.end(command).await;
        tracing::warn!(
            room = %self.name(),
            command = command.to_text(),
            token = who.token,
            user = who.user,
            from = who.address,
            "operator command ended stops of this node"
        );
        Ok(CommandOutcome::Ended)
    }

    /// Returns the time of a new command: later than all commands that this node knows.
    fn command_time(&self) -> Timestamp {
        let known = self.stored_overrides();
        let newest = known.newest().map_or(0, |newest| newest.at + 1);
        Timestamp(self.shared.clock.wall().0.max(newest))
    }

    /// Puts a stop into effect at once; `None` if the command is none.
    fn apply_stop(
        &self,
        command: &OperatorCommand,
        who: &Actor,
        at: Timestamp,
    ) -> Result<Option<PendingStop>, RoomCommandError> {
        let Some(stop) = Stop::of(command) else {
            return Ok(None);
        };
        let settings = self.settings.load_full();
        let allowed = settings
            .evaluation
            .overrides
            .after(command, &settings.file, who, at);
        allowed.map_err(RoomCommandError::Refused)?;
        let stop = PendingStop {
            stop,
            who: who.clone(),
            at: at.0,
        };
        self.change_held(|held| held.add(stop.clone()));
        Ok(Some(stop))
    }

    /// Changes the held stops, and puts the change into effect at once.
    fn change_held(&self, change: impl FnOnce(&mut PendingStops)) {
        let guard = self.changing.lock();
        change(&mut self.held.stops.lock());
        let settings = self.settings.load_full();
        self.apply_settings(Arc::clone(&settings.file), Arc::clone(&settings.stored));
        drop(guard);
    }

    async fn end(self: &Arc<Self>, command: &OperatorCommand) {
        self.change_held(|held| held.end(command));
        self.keep().await;
    }

    /// Writes in a task of its own: a command that the store accepts late must take effect as well.
    async fn write_in_time(
        self: &Arc<Self>,
        command: &OperatorCommand,
        who: &Actor,
        at: Timestamp,
    ) -> Result<(), RoomCommandError> {
        let (by, command, who) = (Arc::clone(self), command.clone(), who.clone());
        let writing = tokio::spawn(async move { by.write(&command, &who, at).await });
        let failed: Box<dyn Error + Send + Sync> = match timeout(WRITE_TIME_OUT, writing).await {
            Ok(Ok(written)) => return written,
            Ok(Err(ended)) => Box::new(ended),
            Err(late) => Box::new(late),
        };
        Err(RoomCommandError::Away(ChangeError::Store(
            StoreError::Unavailable {
                doing: "write within two seconds",
                store_name: format!("the overrides of room {}", self.name()),
                source: failed,
            },
        )))
    }

    /// Saves the held stops in the data folder, and makes the task write them to the store.
    async fn keep(self: &Arc<Self>) -> CommandOutcome {
        let is_kept = self.save().await;
        self.held.wake.notify_one();
        CommandOutcome::Held { is_kept }
    }

    async fn save(self: &Arc<Self>) -> bool {
        let Some(file) = self.held.file.clone() else {
            return false;
        };
        let by = Arc::clone(self);
        let saving = spawn_blocking(move || {
            file.update(|before, found| {
                if before != found {
                    let room = by.name();
                    tracing::warn!(%room, "another process has changed stops of this node");
                    by.change_held(|held| held.merge(before, found));
                }
                by.held.stops()
            })
        });
        let saved = match timeout(SAVE_TIME_OUT, saving).await {
            Ok(Ok(Ok(()))) => true,
            Ok(Ok(Err(error))) => {
                let room = self.name();
                tracing::error!(%room, %error, "held stops not kept in the data folder");
                false
            }
            Ok(Err(_)) | Err(_) => {
                tracing::error!(room = %self.name(), "held stops not kept: the disk timed out");
                false
            }
        };
        self.held.is_kept.store(saved, Ordering::Relaxed);
        saved
    }

    /// Makes the task read the file of held stops, which another process may have changed.
    pub(crate) fn check_held(&self) {
        self.held.wake.notify_one();
    }

    /// Writes held stops to the store as soon as it is available, until `stop`.
    pub(crate) async fn write_held(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let is_held = !self.held.stops.lock().is_empty();
            tokio::select! {
                _ = stop.changed() => return,
                () = self.held.wake.notified() => {}
                () = sleep(RETRY_INTERVAL), if is_held => {}
            }
            tokio::select! {
                _ = stop.changed() => return,
                () = self.write_all_held() => {}
            }
        }
    }

    async fn write_all_held(self: &Arc<Self>) {
        // Held stops of another process on the data folder take effect here as well.
        self.save().await;
        for stop in self.held.stops().iter() {
            self.write_one_held(stop).await;
        }
        // Stops that were settled meanwhile are removed from the folder.
        self.save().await;
    }

    async fn write_one_held(&self, stop: &PendingStop) {
        let command = stop.stop.command();
        let file = Arc::clone(&self.settings.load().file);
        let change = |stored: &RoomOverrides, _| {
            if stop.is_decided_by(stored) {
                return Err(DropError::Superseded);
            }
            let next = stored.after(&command, &file, &stop.who, Timestamp(stop.at));
            next.map_err(DropError::NotAllowed)
        };
        let changing = self.override_state.feed.change(self, change);
        match timeout(WRITE_TIME_OUT, changing).await {
            Ok(Ok(next)) => {
                tracing::warn!(
                    room = %self.name(),
                    version = next.version,
                    command = command.to_text(),
                    "held stop written to the store: in effect at all nodes"
                );
                self.rounds.request_sync();
            }
            Ok(Err(ChangeError::Rejected(reason))) => {
                tracing::warn!(
                    room = %self.name(),
                    command = command.to_text(),
                    cause = chain(&reason),
                    "held stop dropped"
                );
                // The overrides in the store take effect before this stop ends.
                if let Err(error) = self.read_overrides().await {
                    let room = self.name();
                    tracing::debug!(%room, cause = chain(&error), "overrides not read");
                }
                self.change_held(|held| held.remove(stop));
            }
            Ok(Err(error)) => {
                tracing::debug!(room = %self.name(), cause = chain(&error), "held stop not written \
                    yet");
            }
            Err(_) => tracing::debug!(room = %self.name(), "held stop not written yet: timed out"),
        }
    }
}
