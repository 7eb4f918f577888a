//! Decisions about visitors: admit, or queue and why.
//!
//! The gateway decides the form of the response (page, JSON, status, language).

use crate::time::{DurationMs, Timestamp};

/// Reply to a waiting visitor: its position, the reason and the expected wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueuePosition {
    /// Reason for waiting.
    pub reason: QueueReason,
    /// Visitors ahead; `None` where there is no order or it is not known yet.
    pub people_ahead: Option<u32>,
    /// Waiting visitors of this room, as far as this node knows.
    pub people_waiting: u32,
    /// Estimated wait; `None` without measurements.
    pub wait: Option<WaitRange>,
    /// Time until the next refresh; `None` if a refresh is of no use (`reject`).
    pub refresh_after: Option<DurationMs>,
    /// Time of the visitor's arrival.
    pub arrived_at: Timestamp,
}

/// Estimate of a wait: it probably ends between `low` and `high`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitRange {
    /// Shorter end. For `random`: a quarter of the waiting visitors are admitted by then.
    pub low: DurationMs,
    /// Middle. For `random`: half of the waiting visitors are admitted by then.
    pub middle: DurationMs,
    /// Longer end. For `random`: three quarters of the waiting visitors are admitted by then.
    pub high: DurationMs,
}

/// Reason for queueing a visitor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QueueReason {
    /// All seats are taken, or this minute's admissions are used up.
    Full,
    /// Earlier visitors get the slots that are free now.
    NotYourTurn,
    /// The operator queues all new visitors.
    QueueAll,
    /// The room opens at the given time.
    NotOpenYet {
        /// Opening time, room clock.
        opens_at: Timestamp,
    },
    /// The room admits nobody new, and has no queue.
    Rejecting,
    /// The store is unavailable or this node's lease has ended: nobody is admitted until it is
    /// back.
    StoreUnavailable,
    /// The ledger lost its record and waits until all active visitors have been counted anew.
    Recovering {
        /// Time at which it grants leases again at the latest; room clock.
        reopens_at: Timestamp,
    },
    /// The origin does not respond, or responds with errors.
    OriginDown,
}

impl QueueReason {
    /// Returns a stable name for logs, metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NotYourTurn => "not_your_turn",
            Self::QueueAll => "queue_all",
            Self::NotOpenYet { .. } => "not_open_yet",
            Self::Rejecting => "rejecting",
            Self::StoreUnavailable => "store_unavailable",
            Self::Recovering { .. } => "recovering",
            Self::OriginDown => "origin_down",
        }
    }
}
