//! When may a server forget a value?
//!
//! Deliberately absent: what the value is worth till then.

use anteroom_limit::time::{DurationUs, TimestampUs};

/// What a server takes for a length of time; what is more it takes for a time since 1970.
const LENGTH_MAX: u64 = 30 * 86_400;
/// The last time that a server can be told, in 2038: it keeps seconds in 31 bits, and forgets at
/// once what is later.
const LATEST: u64 = (1 << 31) - 1;
/// Tells a server never to forget by time.
const NEVER: u64 = 0;
/// For how much longer than needed a value is kept: clocks of nodes may be apart (1 s), a call may
/// take a while (1.5 s), and a server counts in seconds of its own (1 s). With less, calls that
/// still count could be forgotten.
const LONGER: DurationUs = DurationUs::from_secs(4);
/// One part of so many is added on top: a node's clock is brought to the right time by up to 500
/// parts in a million, so it may take longer than the server's for as much time, for days on end.
/// Twice that is kept.
const SLOWER: u64 = 1_000;
/// On top of that where the server's wall clock counts, which nobody compares with the nodes':
/// clocks that are set to the wrong time zone are off by half of it.
const WALL_CLOCK: DurationUs = DurationUs::from_secs(86_400);

/// The time that is told a server so that a value is kept for at least so long from `now`.
pub(crate) fn exptime(keep_for: DurationUs, now: TimestampUs) -> u64 {
    let keep_for = keep_for + DurationUs(keep_for.0 / SLOWER) + LONGER;
    let length = keep_for.secs_ceil();
    if length <= LENGTH_MAX {
        return length;
    }
    let at = (now + keep_for + WALL_CLOCK).0.div_ceil(1_000_000);
    if at <= LATEST { at } else { NEVER }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: TimestampUs = TimestampUs(1_767_225_600_500_000);

    fn check(keep_for: DurationUs, expected: u64) {
        assert_eq!(exptime(keep_for, NOW), expected, "{keep_for}");
    }

    #[test]
    fn expiry_is_a_length_up_to_thirty_days_and_then_a_time() {
        check(DurationUs(0), 4);
        check(DurationUs(1), 5);
        // 2,589,406 s and a thousandth of it and 4 s are the longest.
        check(DurationUs::from_secs(2_589_406), 2_592_000);
        let time = 1_767_225_600 + 2_592_001 + 86_400;
        check(DurationUs::from_secs(2_589_407), time);
    }

    /// A node that is slower by 500 parts in a million needs a window for longer than it says.
    #[test]
    fn a_window_on_a_slow_clock_is_kept_for_all_of_it() {
        for secs in [60_u64, 86_400, 29 * 86_400] {
            let by_the_server = secs + secs.div_ceil(1_999);
            let kept = exptime(DurationUs::from_secs(secs), NOW);
            assert!(kept >= by_the_server + 3, "{secs}: {kept}");
        }
        check(DurationUs::from_secs(60), 65);
        check(DurationUs::from_secs(86_400), 86_400 + 87 + 4);
    }

    #[test]
    fn what_exceeds_the_servers_range_is_kept_for_good() {
        let left = LATEST - 1_767_225_600 - 86_400 - 5;
        let longest = left - left.div_ceil(1_001);
        let told = exptime(DurationUs::from_secs(longest), NOW);
        assert!((LATEST - 1..=LATEST).contains(&told), "{told}");
        check(DurationUs::from_secs(longest + 2), NEVER);
        check(DurationUs::from_secs(5_000 * 86_400), NEVER);
        check(DurationUs(u64::MAX), NEVER);
    }
}
