//! Wait of a visitor who is not active for the parent's reply.

use crate::time::{DurationMs, Timestamp};

/// Longest wait of an active visitor for the parent. Longer than a busy disk takes, shorter than a
/// visitor notices.
pub const WAIT_TIMEOUT: DurationMs = DurationMs(250);

/// Longest wait of any other visitor, who is queued after it. A distant root may take two round
/// trips; a page that says "wait" costs a visitor two seconds and trust.
pub const WAIT_MAX: DurationMs = DurationMs(1_000);

/// Longest wait of such a visitor where a second's admissions are used up. The second passes, and
/// two syncs show that it has.
const WAIT_FOR_SECOND: DurationMs = DurationMs(1_750);

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
    /// Deadline where a second's admissions are used up.
    ends_after_second_at: Timestamp,
    has_waited: bool,
}

impl WaitDeadline {
    /// Makes the deadline of an active visitor who comes now.
    #[must_use]
    pub fn of_active(now: Timestamp) -> Self {
        Self {
            ends_at: now + WAIT_TIMEOUT,
            ends_after_second_at: now + WAIT_TIMEOUT,
            has_waited: false,
        }
    }

    /// Makes the deadline of another visitor who comes now.
    #[must_use]
    pub fn of_others(now: Timestamp) -> Self {
        Self {
            ends_at: now + WAIT_MAX,
            ends_after_second_at: now + WAIT_FOR_SECOND,
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
    /// `is_second_used_up`: the next second brings admissions ([`Snapshot::is_second_used_up`]).
    ///
    /// [`Snapshot::is_second_used_up`]: crate::sync::Snapshot::is_second_used_up
    #[must_use]
    pub fn begin(&mut self, round: Round, is_second_used_up: bool) -> Option<u64> {
        if round.is_failing {
            return None;
        }
        if is_second_used_up {
            self.ends_at = self.ends_after_second_at;
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(10_000);

    #[test]
    fn only_newcomers_wait_longer_where_a_second_is_used_up() {
        let ends_after = |mut deadline: WaitDeadline, is_second_used_up: bool| {
            let wanted = deadline.begin(Round::default(), is_second_used_up);
            assert_eq!(wanted, Some(1));
            deadline.ends_at().since(NOW)
        };
        let others = WaitDeadline::of_others(NOW);
        assert_eq!(ends_after(others, false), WAIT_MAX);
        assert_eq!(ends_after(others, true), WAIT_FOR_SECOND);
        let active = WaitDeadline::of_active(NOW);
        assert_eq!(ends_after(active, true), WAIT_TIMEOUT);
    }
}
