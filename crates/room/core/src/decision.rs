//! What is said to a visitor: come in, or wait and why.
//!
//! How it is said (page, JSON, status, language) is the gateway's business.

use crate::time::{DurationMs, Timestamp};

/// Where somebody who waits stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueuePosition {
    /// Why this visitor waits.
    pub reason: QueueReason,
    /// How many are ahead; `None` where there is no order or it is not known yet.
    pub people_ahead: Option<u32>,
    /// How many wait in this room, as far as it is known here.
    pub people_waiting: u32,
    /// How long it will probably take; `None` rather than invented.
    pub wait: Option<WaitRange>,
    /// When to ask again; `None` if asking again is of no use (`reject`).
    pub ask_after: Option<DurationMs>,
    /// When this visitor first came.
    pub arrived_at: Timestamp,
}

/// An honest estimate: the wait probably ends between these two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitRange {
    /// The shorter end. For `random`: a quarter of those who wait are in by then.
    pub low: DurationMs,
    /// The middle. For `random`: half of those who wait are in by then.
    pub middle: DurationMs,
    /// The longer end. For `random`: three quarters of those who wait are in by then.
    pub high: DurationMs,
}

/// Why somebody waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QueueReason {
    /// All seats are taken, or this minute's admissions are used up.
    Full,
    /// Others came earlier; slots that are free now are theirs.
    NotYourTurn,
    /// The operator holds everybody.
    QueueAll,
    /// The room opens at the given time.
    NotOpenYet {
        /// Room clock.
        opens_at: Timestamp,
    },
    /// The room takes nobody new, and there is no queue.
    Rejecting,
    /// The store is away or this node's lease has ended: nobody is admitted until it is back.
    StoreAway,
    /// The ledger lost its memory and waits until everybody inside has been counted anew.
    Recovering {
        /// When it will lend again, if nothing else happens; room clock.
        reopens_at: Timestamp,
    },
    /// The origin does not answer, or answers with errors.
    OriginDown,
}

impl QueueReason {
    /// Stable name for logs, metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NotYourTurn => "not_your_turn",
            Self::QueueAll => "queue_all",
            Self::NotOpenYet { .. } => "not_open_yet",
            Self::Rejecting => "rejecting",
            Self::StoreAway => "store_unavailable",
            Self::Recovering { .. } => "recovering",
            Self::OriginDown => "origin_down",
        }
    }
}
