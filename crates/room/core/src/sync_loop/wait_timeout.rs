//! Wait of a visitor who is not active for the parent's reply.

use crate::room::slow_refresh::TURN_WAIT_MAX;
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
    /// Deadline of a wait for a turn, once it has begun.
    turn_ends_at: Option<Timestamp>,
    has_waited: bool,
}

impl WaitDeadline {
    /// Makes the deadline of an active visitor who comes now.
    #[must_use]
    pub fn of_active(now: Timestamp) -> Self {
        Self {
            ends_at: now + WAIT_TIMEOUT,
            ends_after_second_at: now + WAIT_TIMEOUT,
            turn_ends_at: None,
            has_waited: false,
        }
    }

    /// Makes the deadline of another visitor who comes now.
    #[must_use]
    pub fn of_others(now: Timestamp) -> Self {
        Self {
            ends_at: now + WAIT_MAX,
            ends_after_second_at: now + WAIT_FOR_SECOND,
            turn_ends_at: None,
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

    /// Begins a wait of a visitor whose turn is near, for the end of a sync that is due anyway.
    /// Returns `None` if the visitor has waited for long, or the store is unavailable.
    #[must_use]
    pub fn begin_turn(&mut self, round: Round, now: Timestamp) -> Option<u64> {
        let ends_at = *self.turn_ends_at.get_or_insert(now + TURN_WAIT_MAX);
        if round.is_failing || now >= ends_at {
            return None;
        }
        // Its turn may come with the last reply, and the slot with one more.
        self.ends_at = ends_at + WAIT_MAX;
        self.has_waited = true;
        Some(round.ended + 1)
    }

    /// Returns the deadline of the wait for a turn, once it has begun.
    #[must_use]
    pub fn turn_ends_at(&self) -> Timestamp {
        self.turn_ends_at.unwrap_or(self.ends_at)
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

    #[test]
    fn a_wait_for_a_turn_has_one_deadline_and_ends_while_the_store_is_unavailable() {
        let mut deadline = WaitDeadline::of_others(NOW);
        let round = Round {
            begun: 5,
            ended: 4,
            ..Round::default()
        };
        assert_eq!(deadline.begin_turn(round, NOW), Some(5));
        let later = NOW + DurationMs(9_000);
        assert_eq!(deadline.begin_turn(round, later), Some(5));
        assert_eq!(deadline.turn_ends_at(), NOW + TURN_WAIT_MAX);
        assert_eq!(deadline.ends_at(), NOW + TURN_WAIT_MAX + WAIT_MAX);
        assert_eq!(deadline.begin_turn(round, NOW + TURN_WAIT_MAX), None);
        let failing = Round {
            is_failing: true,
            ..round
        };
        assert_eq!(deadline.begin_turn(failing, later), None);
    }
}
