//! Conversion between wall-clock time, which people write and read, and room time.
//!
//! No decision is made here. Seats and leases have room time only.

use anteroom_room::queue_position::{Loss, QueuePosition, QueueReason};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::clock::NodeClock;

/// Difference of the clocks above which a time is converted. Two clocks cannot be read at once, so
/// below it a conversion would make times jitter. That is worse than a time that is a little off.
pub(super) const TOLERANCE: DurationMs = DurationMs(500);

/// Converts the times that visitors read to wall-clock time.
pub(super) fn in_wall_time(mut position: QueuePosition, clock: &dyn NodeClock) -> QueuePosition {
    let (wall, room) = (clock.wall(), clock.now());
    let convert = |at: &mut Timestamp| *at = converted(*at, room, wall);
    convert(&mut position.arrived_at);
    match &mut position.reason {
        QueueReason::NotOpenYet { opens_at: at } | QueueReason::Recovering { reopens_at: at } => {
            convert(at);
        }
        _ => {}
    }
    match &mut position.loss {
        Some(Loss::Session { ended_at, .. } | Loss::Turn { ended_at, .. }) => convert(ended_at),
        Some(Loss::Position {
            last_request_at,
            ended_at,
        }) => {
            convert(last_request_at);
            convert(ended_at);
        }
        Some(Loss::Revoked) | None => {}
    }
    position
}

/// Converts `at` from one clock to another. The clocks show `from` and `to` at present.
pub(super) fn converted(at: Timestamp, from: Timestamp, to: Timestamp) -> Timestamp {
    if from.0.abs_diff(to.0) < TOLERANCE.0 {
        return at;
    }
    Timestamp(at.0.saturating_add(to.0).saturating_sub(from.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(at: u64, (from, to): (u64, u64), expected: u64) {
        let found = converted(Timestamp(at), Timestamp(from), Timestamp(to));
        assert_eq!(found, Timestamp(expected), "{at} from {from} to {to}");
    }

    #[test]
    fn a_small_difference_of_the_clocks_changes_no_time() {
        for to in [99_501, 99_999, 100_000, 100_001, 100_499] {
            check(60_000, (100_000, to), 60_000);
        }
    }

    #[test]
    fn a_converted_time_is_equally_far_away_by_both_clocks() {
        check(160_000, (100_000, 3_700_000), 3_760_000);
        check(3_760_000, (3_700_000, 100_000), 160_000);
    }

    #[test]
    fn times_at_the_ends_of_the_scale_saturate() {
        check(u64::MAX, (100_000, 100_000), u64::MAX);
        check(u64::MAX, (0, 100_000), u64::MAX);
        check(5, (100_000, 0), 0);
    }
}
