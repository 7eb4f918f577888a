//! Recording of the requests to each ledger of a run and its replies, to replay the same schedule
//! on real stores.
//!
//! A simulated store records only on request, and recording changes no decision.

use crate::scenario::model::StoreRef;
use anteroom_room::id::Incarnation;
use anteroom_room::ledger::Ledger;
pub use anteroom_room::ledger_exchange::{Exchange, LedgerOperation, LedgerRole};
use anteroom_room::time::Timestamp;

/// History of one ledger.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Store of the ledger.
    pub place: StoreRef,
    /// Role of the ledger.
    pub role: LedgerRole,
    /// Incarnation of the record that the first operation finds; [`Incarnation::ALONE`] in the
    /// journal of one process.
    pub first_incarnation: Incarnation,
    /// Operations in their order.
    pub operations: Vec<RecordedOperation>,
}

/// Operation of a store: load, decide, write back.
#[derive(Clone, Debug)]
pub struct RecordedOperation {
    /// Time by the store's clock, which may be stepped back.
    pub at: Timestamp,
    /// Record that the operation found.
    pub found: Found,
    /// Operation on the ledger.
    pub operation: LedgerOperation,
    /// Result of the operation.
    pub exchange: Option<Exchange>,
    /// Ledger after the operation.
    pub ledger: Ledger,
}

/// Record that an operation finds in a store.
#[derive(Clone, Debug)]
pub enum Found {
    /// The record that the last operation left.
    Unchanged,
    /// Another server than before, with an older record, or the same.
    Older {
        /// The older record.
        record: Box<Ledger>,
        /// New incarnation.
        incarnation: Incarnation,
    },
    /// Another server than before, and it is empty.
    Empty {
        /// New incarnation.
        incarnation: Incarnation,
        /// Whether no lease of the lost record can still run, because the deployment's own record
        /// is older than a lease.
        is_first: bool,
    },
}

/// Recording under construction.
#[derive(Debug)]
pub(crate) struct Recorder {
    recording: Recording,
    /// Record found by the present operation.
    found: Found,
}

impl Recorder {
    pub(crate) fn new(place: StoreRef, role: LedgerRole, first_incarnation: Incarnation) -> Self {
        Self {
            recording: Recording {
                place,
                role,
                first_incarnation,
                operations: Vec::new(),
            },
            found: Found::Unchanged,
        }
    }

    /// Notes that the present operation finds another record than the last one left.
    pub(crate) fn note_change(&mut self, found: Found) {
        self.found = found;
    }

    /// Notes the first incarnation of the record.
    pub(crate) fn note_first_incarnation(&mut self, incarnation: Incarnation) {
        self.recording.first_incarnation = incarnation;
    }

    /// Adds the present operation to the recording.
    pub(crate) fn note(
        &mut self,
        at: Timestamp,
        (operation, exchange): (&LedgerOperation, Option<&Exchange>),
        ledger: &Ledger,
    ) {
        let found = std::mem::replace(&mut self.found, Found::Unchanged);
        self.recording.operations.push(RecordedOperation {
            at,
            found,
            operation: operation.clone(),
            exchange: exchange.cloned(),
            ledger: ledger.clone(),
        });
    }

    pub(crate) fn finish(self) -> Recording {
        self.recording
    }
}
