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
    /// Estimated wait; `None` if nothing is known of it.
    pub wait: Option<WaitRange>,
    /// Time until the next refresh; `None` if a refresh is of no use (`reject`). Zero: the request
    /// waited for the turn, and the next one is to follow at once.
    pub refresh_after: Option<DurationMs>,
    /// Time of the visitor's arrival.
    pub arrived_at: Timestamp,
    /// Whether all who came before are counted, so that the position is known.
    pub is_counted: bool,
    /// Reason for a longer wait or a later position than announced before, if there is one.
    pub rise: Option<Rise>,
    /// Loss of the visitor before this request; only in the first response after it.
    pub loss: Option<Loss>,
}

impl QueuePosition {
    /// Returns the reply to a visitor if only the reason and the arrival are known.
    #[must_use]
    pub const fn unknown(reason: QueueReason, arrived_at: Timestamp) -> Self {
        Self {
            reason,
            people_ahead: None,
            people_waiting: 0,
            wait: None,
            refresh_after: None,
            arrived_at,
            is_counted: true,
            rise: None,
            loss: None,
        }
    }
}

/// Reason for a later position or a longer wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rise {
    /// An operator lowered a limit of the room.
    LimitLowered,
    /// Fewer visitors are admitted than before, at the same limits: those inside stay longer.
    Slower,
    /// Visitors who came earlier have come back to the queue.
    EarlierVisitors,
}

/// Loss of something that a visitor had.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Loss {
    /// The session: it ended without a request. The visitor is at the end of the queue.
    Session {
        /// End of the session.
        ended_at: Timestamp,
        /// Whether the visitor sent nothing for a whole session. Otherwise the session was a fixed
        /// or a short one.
        was_idle: bool,
    },
    /// The position: no request came within the grace time. The visitor is at the end of the queue.
    Position {
        /// Last request before it ended.
        last_request_at: Timestamp,
        /// End of the grace time.
        ended_at: Timestamp,
    },
    /// The turn: the visitor did not enter while a seat was held for it.
    Turn {
        /// End of the time for which the seat was held.
        ended_at: Timestamp,
        /// Whether it is near the front for one more turn, and not at the end of the queue.
        is_near_front: bool,
    },
    /// The session or the position: an operator ended it.
    Revoked,
}

/// Turn of a visitor that has not entered yet: a seat is held for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HeldTurn {
    /// Time until which the seat is held.
    pub ends_at: Timestamp,
    /// Whether the visitor may extend that time, which is possible once.
    pub can_extend: bool,
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

/// Part of a wait by which the truth may differ from a forecast, apart from [`UNCERTAIN`].
const UNCERTAIN_PART: u64 = 4;
/// Time by which the truth may differ from the forecast of a short wait.
const UNCERTAIN: DurationMs = DurationMs::from_secs(25);

impl WaitRange {
    /// Returns the range around a forecast.
    #[must_use]
    pub fn around(wait: DurationMs) -> Self {
        let width = DurationMs(wait.0 / UNCERTAIN_PART) + UNCERTAIN;
        Self {
            low: wait.less(width),
            middle: wait,
            high: wait + width,
        }
    }
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
