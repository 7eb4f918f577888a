//! How long is a visitor who is not inside willing to wait for the parent's answer?

use crate::time::{DurationMs, Timestamp};

/// Longest wait of a visitor for the parent. Longer than a busy disk takes, shorter than anybody
/// notices; after it the visitor is queued.
pub const PATIENCE: DurationMs = DurationMs(250);

/// How far a loop is, for those who wait for it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Round {
    /// Syncs that have begun.
    pub begun: u64,
    /// The newest sync that is over.
    pub ended: u64,
    /// Whether it failed.
    pub is_failing: bool,
    /// Whether the last errand to the root failed.
    pub is_root_failing: bool,
}

/// How long a visitor still waits. What one answer brings, others may take, and what is not in this
/// data center comes with a later one; so it waits for as many answers as there are in that time,
/// which the loop's pace bounds.
#[derive(Clone, Copy, Debug)]
pub struct WaitDeadline {
    ends_at: Timestamp,
    has_waited: bool,
}

impl WaitDeadline {
    /// Of a visitor who comes now.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            ends_at: now + PATIENCE,
            has_waited: false,
        }
    }

    /// Whether some of it was used.
    #[must_use]
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// When it ends.
    #[must_use]
    pub fn ends_at(&self) -> Timestamp {
        self.ends_at
    }

    /// Begins to wait: for the end of a sync that begins from now on, since one that is under way
    /// does not know what is wanted. `None` if it is not worth it: while the store fails nobody
    /// waits for it.
    #[must_use]
    pub fn begin(&mut self, round: Round) -> Option<u64> {
        if round.is_failing {
            return None;
        }
        self.has_waited = true;
        Some(round.begun + 1)
    }

    /// The wait is over, with an answer or without. Returns whether it is worth waiting once more.
    #[must_use]
    pub fn end(&self, is_answered: bool, round: Round) -> bool {
        is_answered && !round.is_root_failing && !round.is_failing
    }
}
