//! Plays what was recorded of one ledger on a store, and compares.

use std::fmt::Debug;
use std::sync::Arc;

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DeploymentId, Incarnation};
use anteroom_room::ledger::Ledger;
use anteroom_sim::recording::{Exchange, Found, LedgerOperation, LedgerRole, Recording};
use anteroom_store::{
    BoxFuture, Deployment, JoinError, LedgerPlace, Membership, RecordKey, Store, SyncError, join,
};
use parking_lot::Mutex;

use crate::replay::stage::Stage;

/// How many lines of a difference are shown; the first ones say what is wrong.
const LINES_SHOWN: usize = 20;

/// A real store, and what can be done to it.
pub trait Rig: Send {
    /// The store as it is now.
    fn store(&self) -> Arc<dyn Store>;

    /// Empties it: nothing that was written is there any more.
    fn wipe(&mut self) -> BoxFuture<'_, ()>;
}

/// Why a recording did not come out as it was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The store answered otherwise, or its record is another one.
    #[error("operation {index} at {at}: the {what} differs\n{lines}")]
    Difference {
        /// Which operation of the recording.
        index: usize,
        /// When it was, in milliseconds.
        at: u64,
        /// What differs: answer, ledger.
        what: &'static str,
        /// The first lines that differ: `-` as the simulator saw it, `+` as the store has it.
        lines: String,
    },
    /// The store failed.
    #[error("operation {index} failed")]
    Store {
        /// Which operation of the recording.
        index: usize,
        /// Why.
        source: SyncError,
    },
    /// The store failed at the very start.
    #[error("cannot begin")]
    Begin(#[from] JoinError),
}

/// Plays `recording` on the store of `rig`, which is emptied before.
///
/// # Errors
///
/// [`PlayError`] at the first operation that does not come out as it was recorded.
///
/// # Panics
///
/// If the store's clock runs backwards, or it becomes another one by itself.
pub async fn play(recording: &Recording, rig: &mut dyn Rig) -> Result<(), PlayError> {
    rig.wipe().await;
    let mut player = Player::new(recording, rig.store());
    if let Some(first) = recording.operations.first() {
        player.stage.set_now(first.at);
        player.begin_deployment().await?;
    }
    for (index, operation) in recording.operations.iter().enumerate() {
        let failed = |source| PlayError::Store { index, source };
        player.stage.set_now(operation.at);
        player.damage(&operation.found, rig).await.map_err(failed)?;
        if matches!(operation.found, Found::Nothing { is_first: true, .. }) {
            player.begin_deployment().await?;
        }
        let played = player.perform(&operation.deed).await;
        let (exchange, ledger) = played.map_err(failed)?;
        let at = operation.at.0;
        let differs = |what, lines| PlayError::Difference {
            index,
            at,
            what,
            lines,
        };
        if exchange != operation.exchange {
            let lines = lines_that_differ(&operation.exchange, &exchange);
            return Err(differs("answer", lines));
        }
        if ledger != operation.ledger {
            let lines = lines_that_differ(&operation.ledger.to_parts(), &ledger.to_parts());
            return Err(differs("ledger", lines));
        }
    }
    Ok(())
}

struct Player {
    stage: Arc<Stage>,
    place: LedgerPlace,
    /// The life that begins when the record must begin anew.
    incarnation: Arc<Mutex<Option<Incarnation>>>,
}

impl Player {
    fn new(recording: &Recording, store: Arc<dyn Store>) -> Self {
        let stage = Arc::new(Stage::new(store));
        let incarnation = Arc::new(Mutex::new(Some(recording.first_incarnation)));
        let drawn = Arc::clone(&incarnation);
        let role = recording.role;
        let key = match role {
            LedgerRole::Alone => "room",
            LedgerRole::Root(_) => "room/world",
            LedgerRole::Below(_) => "room/here",
        };
        let seen = Arc::clone(&stage) as Arc<dyn Store>;
        let place = LedgerPlace::new(seen, RecordKey(key.to_owned()), "room", role);
        // A life that nobody recorded shows in the record.
        let place = place.with_lives(move || drawn.lock().take().unwrap_or(Incarnation::ALONE));
        Self {
            stage,
            place,
            incarnation,
        }
    }

    /// Writes down that the deployment begins here: without that nobody knows that a ledger which
    /// is not there was never lost.
    async fn begin_deployment(&self) -> Result<(), JoinError> {
        join(&*self.stage, &nodes(), true).await?;
        Ok(())
    }

    /// Returns what came of it, and the ledger that the store then has.
    async fn perform(
        &mut self,
        deed: &LedgerOperation,
    ) -> Result<(Option<Exchange>, Ledger), SyncError> {
        let exchange = self.place.perform(deed).await?;
        let (ledger, _) = self.place.read().await?;
        Ok((exchange, ledger))
    }

    /// Does to the store what was done to the simulated one since the last operation.
    async fn damage(&mut self, found: &Found, rig: &mut dyn Rig) -> Result<(), SyncError> {
        match found {
            Found::WhatWasLeft => {}
            Found::Older {
                record,
                incarnation,
            } => {
                let older = |ledger: &mut Ledger, _| ledger.clone_from(record);
                self.place.change(older).await?;
                self.stage.become_another();
                *self.incarnation.lock() = Some(*incarnation);
            }
            Found::Nothing { incarnation, .. } => {
                rig.wipe().await;
                self.stage.replace(rig.store());
                *self.incarnation.lock() = Some(*incarnation);
            }
        }
        Ok(())
    }
}

/// The nodes that begin the deployment: without them nobody knows that a start is the first.
fn nodes() -> Membership {
    Membership {
        deployment: Deployment {
            birth: DeploymentId(1),
            lottery_key: LotteryKey([1; 16]),
        },
        ticket_keys: vec![[1; 32]],
    }
}

fn lines_that_differ<T: Debug>(recorded: &T, played: &T) -> String {
    let (recorded, played) = (format!("{recorded:#?}"), format!("{played:#?}"));
    let pairs = recorded.lines().zip(played.lines()).enumerate();
    let differing = pairs.filter(|(_, (recorded, played))| recorded != played);
    let told = differing.map(|(line, (recorded, played))| {
        let line = line + 1;
        format!("{line}: - {recorded}\n{line}: + {played}\n")
    });
    told.take(LINES_SHOWN).collect()
}
