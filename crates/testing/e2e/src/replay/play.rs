//! Replays the recording of one ledger on a store, and compares.

use std::fmt::Debug;
use std::sync::Arc;

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DeploymentId, Incarnation};
use anteroom_room::ledger::Ledger;
use anteroom_room::time::Timestamp;
use anteroom_sim::recording::{Exchange, Found, LedgerOperation, LedgerRole, Recording};
use anteroom_store::{
    BoxFuture, Deployment, JoinError, Membership, RecordKey, Store, StoredLedger, SyncError, join,
};
use parking_lot::Mutex;

use crate::replay::stage::Stage;

/// Lines of a difference that are shown; the first ones show the cause.
const LINES_SHOWN: usize = 20;

/// Real store, and the faults that a test can cause.
pub trait Rig: Send {
    /// Returns the store in its present state.
    fn store(&self) -> Arc<dyn Store>;

    /// Empties the store.
    fn wipe(&mut self) -> BoxFuture<'_, ()>;
}

/// Difference between a recording and its replay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The store gave another reply, or its record is another one.
    #[error("operation {index} at {at}: the {what} differs\n{lines}")]
    Difference {
        /// Index of the operation in the recording.
        index: usize,
        /// Time of the operation, in milliseconds.
        at: u64,
        /// Part that differs: reply, ledger.
        what: &'static str,
        /// First lines that differ: `-` in the simulator, `+` in the store.
        lines: String,
    },
    /// The store failed.
    #[error("operation {index} failed")]
    Store {
        /// Index of the operation in the recording.
        index: usize,
        /// Underlying error.
        source: SyncError,
    },
    /// The store failed at the start.
    #[error("cannot begin")]
    Begin(#[from] JoinError),
}

/// Replays `recording` on the store of `rig`, which is emptied before.
///
/// # Errors
///
/// Returns [`PlayError`] at the first operation with another result.
///
/// # Panics
///
/// If the store's clock runs backwards, or its identity changes.
pub async fn play(recording: &Recording, rig: &mut dyn Rig) -> Result<(), PlayError> {
    rig.wipe().await;
    let mut player = Player::new(recording, rig.store());
    if let Some(first) = recording.operations.first() {
        player.stage.set_now(first.at);
        player.stage.set_store(first.ledger.store());
        player.begin_deployment().await?;
    }
    for (index, operation) in recording.operations.iter().enumerate() {
        let failed = |source| PlayError::Store { index, source };
        player.stage.set_now(operation.at);
        player
            .apply_fault(&operation.found, rig)
            .await
            .map_err(failed)?;
        player.stage.set_store(operation.ledger.store());
        if matches!(operation.found, Found::Empty { is_first: true, .. }) {
            player.begin_deployment().await?;
        }
        let played = player.perform(&operation.operation).await;
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
            return Err(differs("reply", lines));
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
    place: StoredLedger,
    /// Incarnation for the case that the record must begin again.
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
            LedgerRole::DataCenter(_) => "room/here",
        };
        let seen = Arc::clone(&stage) as Arc<dyn Store>;
        let place = StoredLedger::new(seen, RecordKey(key.to_owned()), "room", role);
        // A wrong incarnation would show in the record.
        let place =
            place.with_incarnations(move || drawn.lock().take().unwrap_or(Incarnation::ALONE));
        Self {
            stage,
            place,
            incarnation,
        }
    }

    /// Records that the deployment begins here. Otherwise no node could tell a new ledger from a
    /// lost one.
    async fn begin_deployment(&self) -> Result<(), JoinError> {
        join(&*self.stage, &nodes(), true, Timestamp::ZERO).await?;
        Ok(())
    }

    /// Returns the result of the operation, and the ledger of the store after it.
    async fn perform(
        &mut self,
        operation: &LedgerOperation,
    ) -> Result<(Option<Exchange>, Ledger), SyncError> {
        let exchange = self.place.perform(operation).await?;
        let ledger = self.place.read().await?;
        Ok((exchange, ledger))
    }

    /// Applies the fault that the simulated store had since the last operation.
    async fn apply_fault(&mut self, found: &Found, rig: &mut dyn Rig) -> Result<(), SyncError> {
        match found {
            Found::Unchanged => {}
            Found::Older {
                record,
                incarnation,
            } => {
                self.place.replace(record).await?;
                *self.incarnation.lock() = Some(*incarnation);
            }
            Found::Empty { incarnation, .. } => {
                rig.wipe().await;
                self.stage.replace(rig.store());
                *self.incarnation.lock() = Some(*incarnation);
            }
        }
        Ok(())
    }
}

/// Returns the nodes that begin the deployment, so that the first start counts as first.
fn nodes() -> Membership {
    Membership {
        deployment: Deployment {
            deployment_id: DeploymentId(1),
            lottery_key: LotteryKey([1; 16]),
        },
        ticket_keys: vec![[1; 32]],
    }
}

fn lines_that_differ<T: Debug>(recorded: &T, played: &T) -> String {
    let (recorded, played) = (format!("{recorded:#?}"), format!("{played:#?}"));
    let pairs = recorded.lines().zip(played.lines()).enumerate();
    let differing = pairs.filter(|(_, (recorded, played))| recorded != played);
    let text = differing.map(|(line, (recorded, played))| {
        let line = line + 1;
        format!("{line}: - {recorded}\n{line}: + {played}\n")
    });
    text.take(LINES_SHOWN).collect()
}
