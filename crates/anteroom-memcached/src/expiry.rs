//! When may a server forget a value?
//!
//! Deliberately absent: what the value is worth till then.

use anteroom_limits::time::{MicroSpan, Micros};

/// What a server takes for a length of time; what is more it takes for a time since 1970.
const LENGTH_MAX: u64 = 30 * 86_400;
/// For how much longer than needed a value is kept: clocks of nodes may be apart (1 s), a call may take a while
/// (1.5 s), and a server counts in seconds of its own (1 s). With less, calls that still count could be forgotten.
const LONGER: MicroSpan = MicroSpan::from_secs(4);

/// The time that is told a server so that a value is kept for at least so long from `now`.
pub(crate) fn exptime(keep_for: MicroSpan, now: Micros) -> u64 {
    let length = (keep_for + LONGER).secs_ceil();
    if length <= LENGTH_MAX {
        return length;
    }
    // Here the server's wall clock counts, which is why it is told as little as possible.
    (now + keep_for + LONGER).0.div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_thirty_days_are_a_length_and_more_is_a_time() {
        let now = Micros(1_767_225_600_500_000);
        let check = |secs: u64, expected: u64| {
            assert_eq!(exptime(MicroSpan::from_secs(secs), now), expected);
        };
        check(0, 4);
        check(60, 64);
        check(2_592_000 - 4, 2_592_000);
        check(2_592_000 - 3, 1_767_225_600 + 2_592_000 + 2);
        assert_eq!(exptime(MicroSpan(1), now), 5);
    }
}
