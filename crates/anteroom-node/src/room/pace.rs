//! How often may a room bother a store that others need as well?
//!
//! Whoever finds no slot at its node makes it ask; a crowd must not turn into a crowd of calls.

use std::time::Duration;

use tokio::time::Instant;

/// Between two rounds on average, of two calls each; a little less than the busiest period.
const INTERVAL: Duration = Duration::from_millis(225);
/// Rounds at once, after a quiet time: as many as one visitor may wait for.
const BURST: u32 = 4;

/// A generic cell rate: each round moves the time at which the allowance would be whole again.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    whole_at: Instant,
}

impl Pace {
    pub(super) fn new(is_paced: bool, now: Instant) -> Self {
        Self {
            interval: if is_paced { INTERVAL } else { Duration::ZERO },
            whole_at: now,
        }
    }

    /// A round begins.
    pub(super) fn note_round(&mut self, now: Instant) {
        self.whole_at = self.whole_at.max(now) + self.interval;
    }

    /// When the next one may begin.
    pub(super) fn next_at(&self, now: Instant) -> Instant {
        let ahead = self.interval * BURST;
        let owed = self.whole_at.saturating_duration_since(now) + self.interval;
        now + owed.saturating_sub(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds that a crowd in a hurry gets within `time`.
    fn rounds_within(pace: &mut Pace, start: Instant, time: Duration) -> u32 {
        let mut now = start;
        let mut rounds = 0;
        while now < start + time && rounds < 10_000 {
            pace.note_round(now);
            rounds += 1;
            now = pace.next_at(now);
        }
        rounds
    }

    #[test]
    fn a_crowd_gets_four_rounds_at_once_and_then_four_and_a_half_a_second() {
        let start = Instant::now();
        let mut pace = Pace::new(true, start);
        assert_eq!(pace.next_at(start), start);
        assert_eq!(rounds_within(&mut pace, start, Duration::from_secs(9)), 43);
    }

    #[test]
    fn one_that_asks_every_quarter_of_a_second_never_waits() {
        let start = Instant::now();
        let mut pace = Pace::new(true, start);
        for round in 0..100 {
            let now = start + Duration::from_millis(250) * round;
            assert_eq!(pace.next_at(now), now);
            pace.note_round(now);
        }
    }

    #[test]
    fn a_store_of_ones_own_may_be_asked_at_any_time() {
        let start = Instant::now();
        let mut pace = Pace::new(false, start);
        for _ in 0..100 {
            pace.note_round(start);
            assert_eq!(pace.next_at(start), start);
        }
    }
}
