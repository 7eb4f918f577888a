//! Conversion of room time to the wall clock, which people and dashboards use.

use anteroom_node::NodeClock;
use anteroom_room::time::{DurationMs, Timestamp};

/// Both clocks, read at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) room: Timestamp,
    pub(crate) wall: Timestamp,
}

impl Clocks {
    pub(crate) fn read(clock: &dyn NodeClock) -> Self {
        Self {
            room: clock.now(),
            wall: clock.wall(),
        }
    }

    /// Converts a point of room time to the wall clock.
    pub(crate) fn to_wall(self, at: Timestamp) -> Timestamp {
        Timestamp(at.0.saturating_add(self.wall.0).saturating_sub(self.room.0))
    }

    /// Returns how far room time is ahead of the wall clock, in seconds; negative if it is behind.
    pub(crate) fn offset_seconds(self) -> f64 {
        if self.room < self.wall {
            -seconds(self.wall.since(self.room))
        } else {
            seconds(self.room.since(self.wall))
        }
    }
}

/// Converts a duration to seconds, as metrics have it. Exact up to 285 000 years.
pub(crate) fn seconds(span: DurationMs) -> f64 {
    // Whole milliseconds below 2^53 are exact in an f64.
    span.0 as f64 / 1_000.0
}

/// Converts a point in time to seconds since the Unix epoch, as metrics have it.
pub(crate) fn timestamp(at: Timestamp) -> f64 {
    seconds(at.since(Timestamp::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(room: u64, wall: u64, at: u64, expected: (u64, &str)) {
        let clocks = Clocks {
            room: Timestamp(room),
            wall: Timestamp(wall),
        };
        let found = (
            clocks.to_wall(Timestamp(at)).0,
            clocks.offset_seconds().to_string(),
        );
        assert_eq!(found, (expected.0, expected.1.to_owned()));
    }

    #[test]
    fn points_in_time_shift_by_the_offset_of_the_clocks() {
        check(1_000, 1_000, 5_000, (5_000, "0"));
        check(1_500, 1_000, 5_000, (4_500, "0.5"));
        check(1_000, 3_250, 5_000, (7_250, "-2.25"));
        check(9_000, 1_000, 5_000, (0, "8"));
        check(9_000, 1_000, u64::MAX, (u64::MAX - 9_000, "8"));
    }
}
