//! Expiry of values at a server.
//!
//! Deliberately absent: the meaning of a value until then.

use anteroom_limit::time::{DurationUs, TimestampUs};

/// Largest expiry in seconds that a server takes as a length of time; it takes a larger one as a
/// Unix time.
const LENGTH_MAX: u64 = 30 * 86_400;
/// Latest expiry time, in 2038: servers keep seconds in 31 bits, and expire later times at once.
const LATEST: u64 = (1 << 31) - 1;
/// Expiry of a value that never expires.
const NEVER: u64 = 0;
/// Time for which a value is kept longer than needed: clocks of nodes may differ (1 s), a request
/// may take a while (1.5 s), and a server counts in seconds of its own (1 s). With less, requests
/// that still count could expire.
const LONGER: DurationUs = DurationUs::from_secs(4);
/// Divisor of the share that is added on top. A node's clock is slewed by up to 500 parts in a
/// million, so for days it may run slower than the server's. Twice that is kept.
const SLOWER: u64 = 1_000;
/// Time added where the server's wall clock counts, which may differ from the nodes': a wrong time
/// zone is off by half of it.
const WALL_CLOCK: DurationUs = DurationUs::from_secs(86_400);

/// Returns the expiry that keeps a value at least for `keep_for` from `now`.
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
        // 2,589,406 s, a thousandth of it and 4 s are the longest length.
        check(DurationUs::from_secs(2_589_406), 2_592_000);
        let time = 1_767_225_600 + 2_592_001 + 86_400;
        check(DurationUs::from_secs(2_589_407), time);
    }

    /// A node whose clock is slower by 500 parts in a million needs a window for longer.
    #[test]
    fn a_window_on_a_slow_clock_is_kept_to_its_end() {
        for secs in [60_u64, 86_400, 29 * 86_400] {
            let by_server_clock = secs + secs.div_ceil(1_999);
            let kept = exptime(DurationUs::from_secs(secs), NOW);
            assert!(kept >= by_server_clock + 3, "{secs}: {kept}");
        }
        check(DurationUs::from_secs(60), 65);
        check(DurationUs::from_secs(86_400), 86_400 + 87 + 4);
    }

    #[test]
    fn a_time_beyond_the_servers_range_never_expires() {
        let left = LATEST - 1_767_225_600 - 86_400 - 5;
        let longest = left - left.div_ceil(1_001);
        let expiry = exptime(DurationUs::from_secs(longest), NOW);
        assert!((LATEST - 1..=LATEST).contains(&expiry), "{expiry}");
        check(DurationUs::from_secs(longest + 2), NEVER);
        check(DurationUs::from_secs(5_000 * 86_400), NEVER);
        check(DurationUs(u64::MAX), NEVER);
    }
}
