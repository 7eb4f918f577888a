//! How long is a server left alone after it failed?
//!
//! Knows no clock and no randomness; both are arguments.

use std::time::Duration;

/// After the first failure: long enough that a server which restarts is not asked a thousand times
/// meanwhile, short enough that a dropped connection costs less than one period of a node.
const FIRST: Duration = Duration::from_millis(50);
/// At most: an operator who has repaired a server will see it used while still looking.
const LONGEST: Duration = Duration::from_secs(5);

/// How many failures there were in a row.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    failures: u32,
}

impl BackOff {
    /// Counts a failure and returns how long to wait: 50 ms, doubled with every failure up to 5 s,
    /// of which `random` takes away up to a half, so that nodes do not come back all at once.
    pub(crate) fn after_failure(&mut self, random: u32) -> Duration {
        let doubled = FIRST.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        let full = doubled.min(LONGEST);
        // At most 5 s times 2^32 in microseconds: below 2^63.
        let micros = u64::try_from(full.as_micros()).unwrap_or(u64::MAX) / 2;
        let less = micros.saturating_mul(u64::from(random)) >> 32;
        full - Duration::from_micros(less)
    }

    /// An answer came: the next failure is the first one again.
    pub(crate) fn after_answer(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut back_off = BackOff::default();
        let waits: Vec<u128> = (0..9)
            .map(|_| back_off.after_failure(0).as_millis())
            .collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    }

    #[test]
    fn chance_takes_away_up_to_a_half() {
        let check = |random: u32, expected_us: u128| {
            let wait = BackOff::default().after_failure(random);
            assert_eq!(wait.as_micros(), expected_us, "{random}");
        };
        check(0, 50_000);
        check(1 << 31, 37_500);
        check(u32::MAX, 25_001);
    }

    #[test]
    fn an_answer_makes_the_next_failure_the_first() {
        let mut back_off = BackOff::default();
        for _ in 0..40 {
            back_off.after_failure(0);
        }
        back_off.after_answer();
        assert_eq!(back_off.after_failure(0), FIRST);
    }
}
