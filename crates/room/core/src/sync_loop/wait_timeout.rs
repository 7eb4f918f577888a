//! Wait of a visitor who is not active for the parent's reply.

use crate::time::{DurationMs, Timestamp};

/// Longest wait of an active visitor for the parent. Longer than a busy disk takes, shorter than a
/// visitor notices.
pub const WAIT_TIMEOUT: DurationMs = DurationMs(250);

/// Longest wait of any other visitor, who is queued after it. A distant root may take two round
/// trips; a page that says "wait" costs a visitor two seconds and trust.
pub const WAIT_MAX: DurationMs = DurationMs(1_000);

/// Progress of a loop, for visitors who wait for it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Round {
    /// Number of syncs that have begun.
    pub begun: u64,
    /// Number of the newest sync that is over.
    pub ended: u64,
    /// Whether the newest sync failed.
    pub is_failing: bool,
    /// Whether the last upstream sync failed.
    pub is_root_failing: bool,
}

/// Deadline of a visitor's wait. Others may take what one reply brings, and slots of other data
/// centers come with a later one. So the visitor waits for as many replies as come in that time;
/// the loop's pace bounds them.
#[derive(Clone, Copy, Debug)]
pub struct WaitDeadline {
    ends_at: Timestamp,
    has_waited: bool,
}

impl WaitDeadline {
    /// Makes the deadline of an active visitor who comes now.
    #[must_use]
    pub fn of_active(now: Timestamp) -> Self {
        Self {
            ends_at: now + WAIT_TIMEOUT,
            has_waited: false,
        }
    }

    /// Makes the deadline of another visitor who comes now.
    #[must_use]
    pub fn of_others(now: Timestamp) -> Self {
        Self {
            ends_at: now + WAIT_MAX,
            has_waited: false,
        }
    }

    /// Whether the visitor has waited already.
    #[must_use]
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Returns the deadline.
    #[must_use]
    pub fn ends_at(&self) -> Timestamp {
        self.ends_at
    }

    /// Begins a wait for the end of a sync that begins from now on; one that is under way does not
    /// know of this visitor. Returns `None` while the store is unavailable: then no visitor waits.
    #[must_use]
    pub fn begin(&mut self, round: Round) -> Option<u64> {
        if round.is_failing {
            return None;
        }
        self.has_waited = true;
        Some(round.begun + 1)
    }

    /// Ends a wait, with a reply or without. Returns whether another one is worth while.
    #[must_use]
    pub fn end(&self, has_reply: bool, round: Round) -> bool {
        has_reply && !round.is_root_failing && !round.is_failing
    }
}
