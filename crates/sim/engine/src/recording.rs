//! What was each ledger of a run asked, when, and what did it answer? For whoever plays the same
//! schedule on real stores.
//!
//! A store of a run keeps this only if it is told to. Nothing here knows how it is played, and
//! nothing that is decided depends on whether it is kept.

use crate::scenario::model::StorePlace;
use anteroom_room::id::Incarnation;
use anteroom_room::ledger::Ledger;
pub use anteroom_room::ledger_call::{Exchange, LedgerOperation, LedgerRole};
use anteroom_room::time::Timestamp;

/// All that happened to one ledger.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Which store.
    pub place: StorePlace,
    /// Whom its ledger lends to.
    pub role: LedgerRole,
    /// The life of the record that the first caller finds; [`Incarnation::ALONE`] in the journal of
    /// one process.
    pub first_incarnation: Incarnation,
    /// What happened, in its order.
    pub operations: Vec<Operation>,
}

/// One call of a store: load, decide, write back.
#[derive(Clone, Debug)]
pub struct Operation {
    /// When, by the store's clock. It may be stepped back.
    pub at: Timestamp,
    /// What the caller found.
    pub found: Found,
    /// What it did.
    pub deed: LedgerOperation,
    /// What came of it.
    pub exchange: Option<Exchange>,
    /// The ledger after it.
    pub ledger: Ledger,
}

/// What a caller finds in a store.
#[derive(Clone, Debug)]
pub enum Found {
    /// What the last one left.
    WhatWasLeft,
    /// Another server than before, with an older record, or the same.
    Older {
        /// That record.
        record: Box<Ledger>,
        /// The life that begins.
        incarnation: Incarnation,
    },
    /// Another server than before, and it is empty.
    Nothing {
        /// The life that begins.
        incarnation: Incarnation,
        /// Whether nothing that was lost can have lent what still runs: the deployment's own record
        /// has been there for longer.
        is_first: bool,
    },
}

/// Keeps a recording while it is made.
#[derive(Debug)]
pub(crate) struct Recorder {
    recording: Recording,
    /// For the operation under way.
    found: Found,
}

impl Recorder {
    pub(crate) fn new(place: StorePlace, role: LedgerRole, first_incarnation: Incarnation) -> Self {
        Self {
            recording: Recording {
                place,
                role,
                first_incarnation,
                operations: Vec::new(),
            },
            found: Found::WhatWasLeft,
        }
    }

    /// The caller under way finds something else than was left.
    pub(crate) fn note_damage(&mut self, found: Found) {
        self.found = found;
    }

    /// The record begins with this life.
    pub(crate) fn note_first_incarnation(&mut self, incarnation: Incarnation) {
        self.recording.first_incarnation = incarnation;
    }

    /// The operation under way is over.
    pub(crate) fn note(
        &mut self,
        at: Timestamp,
        (deed, exchange): (&LedgerOperation, Option<&Exchange>),
        ledger: &Ledger,
    ) {
        let found = std::mem::replace(&mut self.found, Found::WhatWasLeft);
        self.recording.operations.push(Operation {
            at,
            found,
            deed: deed.clone(),
            exchange: exchange.cloned(),
            ledger: ledger.clone(),
        });
    }

    pub(crate) fn finish(self) -> Recording {
        self.recording
    }
}
