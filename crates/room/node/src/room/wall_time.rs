//! Which point in time do people mean, and which one do they read? Theirs is the wall clock, the
//! room's is room time.
//!
//! Nothing here decides; seats and leases know room time only.

use anteroom_room::decision::{QueuePosition, QueueReason};
use anteroom_room::rules::Rules;
use anteroom_room::time::{DurationMs, Timestamp};

use crate::clock::NodeClock;

/// How far the clocks may be apart before a time is converted. Below it a conversion would only
/// make the time tremble: two clocks cannot be read at once, and 10:00:00 that is 09:59:59 a moment
/// later is worse than a time that is a little off.
pub(super) const TOLERANCE: DurationMs = DurationMs(500);

/// An operator means the wall clock when writing down a time of opening.
pub(super) fn in_room_time(rules: Rules, clock: &dyn NodeClock) -> Rules {
    let (wall, room) = (clock.wall(), clock.now());
    let opens_at = rules.opens_at.map(|at| converted(at, wall, room));
    Rules { opens_at, ..rules }
}

/// Points in time that people read are told by the wall clock.
pub(super) fn in_wall_time(mut place: QueuePosition, clock: &dyn NodeClock) -> QueuePosition {
    let (wall, room) = (clock.wall(), clock.now());
    let convert = |at: &mut Timestamp| *at = converted(*at, room, wall);
    convert(&mut place.arrived_at);
    match &mut place.reason {
        QueueReason::NotOpenYet { opens_at: at } | QueueReason::Recovering { reopens_at: at } => {
            convert(at);
        }
        _ => {}
    }
    place
}

/// What one clock calls `at`, as another calls it; the clocks show `here` and `there` right now.
fn converted(at: Timestamp, here: Timestamp, there: Timestamp) -> Timestamp {
    if here.0.abs_diff(there.0) < TOLERANCE.0 {
        return at;
    }
    Timestamp(at.0.saturating_add(there.0).saturating_sub(here.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(at: u64, (here, there): (u64, u64), expected: u64) {
        let found = converted(Timestamp(at), Timestamp(here), Timestamp(there));
        assert_eq!(found, Timestamp(expected), "{at}, {here} there is {there}");
    }

    #[test]
    fn a_time_stays_steady_with_two_clocks_read_in_turn() {
        for there in [99_501, 99_999, 100_000, 100_001, 100_499] {
            check(60_000, (100_000, there), 60_000);
        }
    }

    #[test]
    fn where_the_clocks_differ_a_time_is_as_far_away_by_either() {
        check(160_000, (100_000, 3_700_000), 3_760_000);
        check(3_760_000, (3_700_000, 100_000), 160_000);
    }

    #[test]
    fn times_at_the_ends_of_the_scale_stay_there() {
        check(u64::MAX, (100_000, 100_000), u64::MAX);
        check(u64::MAX, (0, 100_000), u64::MAX);
        check(5, (100_000, 0), 0);
    }
}
