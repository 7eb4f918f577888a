//! Runs the core's ledger on a store: load, decide, compare and swap.

use anteroom_core::ledger::{Ledger, LendingTerms};
use anteroom_core::sync::{Reply, SyncRequest};
use anteroom_wire::ledger::{self as record, LedgerRecordError};

use crate::store::{RecordKey, RecordVersion, Store, StoreError, Swap};

/// How often a lost race is tried again before the caller waits for its next period. With tens of
/// writers more tries would only add to the crowd.
const TRIES: u32 = 8;

/// Why a sync brought no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The store failed.
    #[error("cannot reach the ledger of room {room}")]
    Store {
        /// The room.
        room: String,
        /// Why not.
        source: StoreError,
    },
    /// The record is not readable.
    #[error("cannot read the ledger of room {room}")]
    Record {
        /// The room.
        room: String,
        /// Why not.
        source: LedgerRecordError,
    },
    /// Others wrote first every time.
    #[error("lost {TRIES} races for the ledger of room {room}")]
    Contention {
        /// The room.
        room: String,
    },
}

/// Sends one request to a room's ledger.
///
/// # Errors
///
/// [`SyncError`] if there is no reply. The request may have taken effect all the same; the next
/// one, in absolute figures, sets that right.
pub async fn sync(
    store: &dyn Store,
    key: &RecordKey,
    request: &SyncRequest,
    lending: LendingTerms,
) -> Result<Reply, SyncError> {
    let failed = |source| SyncError::Store {
        room: key.0.clone(),
        source,
    };
    for _ in 0..TRIES {
        let loaded = store.load(key).await.map_err(failed)?;
        let (ledger, version) = match loaded.record {
            None => (Ledger::new(), RecordVersion(0)),
            Some(found) => {
                let ledger = record::decode(&found.value).map_err(|source| SyncError::Record {
                    room: key.0.clone(),
                    source,
                })?;
                (ledger, found.version)
            }
        };
        let (ledger, reply) = ledger.sync(request, lending, loaded.now);
        let value = record::encode(&ledger);
        match store.compare_and_swap(key, version, value).await {
            Ok(Swap::Swapped) => return Ok(reply),
            Ok(Swap::Conflict) => {}
            Err(source) => return Err(failed(source)),
        }
    }
    Err(SyncError::Contention {
        room: key.0.clone(),
    })
}
