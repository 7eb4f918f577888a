//! PromiseCounts waits, compared with what came true.

use anteroom_room::queue_position::{QueuePosition, QueueReason, WaitRange};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::outcome::AnnouncedWaits;

/// Width of a range that is useful, apart from half of the wait.
const USEFUL_WIDTH: DurationMs = DurationMs::from_secs(60);

/// Range in a response to a waiting visitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announcement {
    at: Timestamp,
    wait: WaitRange,
}

/// Counts of announced ranges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Announcements {
    /// Responses to visitors who wait for their turn, and whose arrival was counted.
    responses: u64,
    /// Those without a range.
    unknown: u64,
    /// Those that named a reason for a longer wait.
    risen: u64,
    /// Ranges of visitors who were admitted.
    ranges: u64,
    /// Those that contain the admission and are narrow enough to be useful.
    right: u64,
    /// Those whose visitor was admitted earlier.
    early: u64,
    /// Those whose visitor was admitted later.
    late: u64,
}

impl Announcement {
    /// Returns the announcement of a response at `now`, if it has a range.
    pub(crate) fn of(position: &QueuePosition, now: Timestamp) -> Option<Self> {
        position.wait.map(|wait| Self { at: now, wait })
    }
}

impl Announcements {
    /// Counts a response to a waiting visitor.
    pub(super) fn note_response(&mut self, position: &QueuePosition) {
        let waits_for_its_turn = matches!(
            position.reason,
            QueueReason::Full | QueueReason::NotYourTurn
        );
        if waits_for_its_turn && position.is_counted {
            self.responses += 1;
            self.unknown += u64::from(position.wait.is_none());
            self.risen += u64::from(position.rise.is_some());
        }
    }

    /// Compares the announcements to a visitor with the time of its admission.
    pub(super) fn note_admission(&mut self, announced: &[Announcement], now: Timestamp) {
        for Announcement { at, wait } in announced {
            let took = now.since(*at);
            let width = DurationMs(wait.high.0 - wait.low.0);
            let is_narrow = width <= DurationMs(wait.middle.0 / 2) + USEFUL_WIDTH;
            self.ranges += 1;
            if took < wait.low {
                self.early += 1;
            } else if took > wait.high {
                self.late += 1;
            } else {
                self.right += u64::from(is_narrow);
            }
        }
    }

    /// Returns the shares; `None` if no range was announced.
    pub(super) fn shares(&self) -> Option<AnnouncedWaits> {
        let of_ranges = |count: u64| count as f64 / self.ranges as f64;
        let of_responses = |count: u64| count as f64 / self.responses.max(1) as f64;
        (self.ranges > 0).then(|| AnnouncedWaits {
            right: of_ranges(self.right),
            early: of_ranges(self.early),
            late: of_ranges(self.late),
            unknown: of_responses(self.unknown),
            risen: of_responses(self.risen),
        })
    }
}
