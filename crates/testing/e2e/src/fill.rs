//! Fill of a room while visitors wait: the share of taken seats, and the time for which seats stay
//! free.
//!
//! Pure: the caller passes the time, the active visitors and the waiting visitors. The origin
//! cannot tell seats apart, so the seat that is free for longest counts as taken first. The longest
//! time is then never shorter than with any other order. Changes between two samples are not seen.
//! They make other seats look free for longer, never shorter.

use std::collections::VecDeque;

use anteroom_room::time::{DurationMs, Timestamp};

/// Interval of the mean's samples.
const SAMPLE_EVERY: DurationMs = DurationMs(1_000);

/// Meter of a room's fill.
#[derive(Debug)]
pub struct FillMeter {
    seats: usize,
    began_at: Option<Timestamp>,
    full_at: Option<Timestamp>,
    next_sample_at: Timestamp,
    samples: u64,
    inside_sum: u64,
    /// Times since which seats are free, the oldest first.
    free_since: VecDeque<Timestamp>,
    free_for: Vec<DurationMs>,
    /// Whether visitors waited at the last sample.
    was_wanted: bool,
}

/// Result of the meter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fill {
    /// Time until all seats were taken for the first time.
    pub full_after: DurationMs,
    /// Mean share of taken seats since then, in parts of a hundred thousand.
    pub taken_per_100_000: u64,
    /// Number of samples of that mean.
    pub samples: u64,
    /// Number of free seats that were taken since then while visitors waited.
    pub taken: usize,
    /// Median time for which those seats were free.
    pub free_p50: DurationMs,
    /// 99th percentile of that time.
    pub free_p99: DurationMs,
    /// Longest such time; a seat that is free at the end counts.
    pub free_max: DurationMs,
}

impl FillMeter {
    /// Creates a meter for a room with so many seats; at least one.
    #[must_use]
    pub const fn new(seats: usize) -> Self {
        Self {
            seats,
            began_at: None,
            full_at: None,
            next_sample_at: Timestamp::ZERO,
            samples: 0,
            inside_sum: 0,
            free_since: VecDeque::new(),
            free_for: Vec::new(),
            was_wanted: false,
        }
    }

    /// Records the state at `now`. Nothing counts before all seats were taken once.
    pub fn look(&mut self, now: Timestamp, inside: usize, waiting: usize) {
        self.began_at.get_or_insert(now);
        if self.full_at.is_none() {
            if inside < self.seats {
                return;
            }
            self.full_at = Some(now);
            self.next_sample_at = now;
        }
        if now >= self.next_sample_at {
            self.samples += 1;
            self.inside_sum += inside as u64;
            self.next_sample_at = self.next_sample_at.max(now) + SAMPLE_EVERY;
        }
        let free = self.seats.saturating_sub(inside);
        while self.free_since.len() > free {
            let since = self.free_since.pop_front().unwrap_or(now);
            if self.was_wanted {
                self.free_for.push(now.since(since));
            }
        }
        self.was_wanted = waiting > 0;
        if !self.was_wanted {
            // Without waiting visitors a seat may stay free.
            self.free_since.clear();
        }
        self.free_since.resize(free, now);
    }

    /// Returns the result until `now`; `None` if the room was never full.
    #[must_use]
    pub fn fill(&self, now: Timestamp) -> Option<Fill> {
        let (began_at, full_at) = (self.began_at?, self.full_at?);
        let mut free_for = self.free_for.clone();
        free_for.sort_unstable();
        let quantile = |percent: usize| {
            let index = (free_for.len() * percent).div_ceil(100).saturating_sub(1);
            free_for.get(index).copied().unwrap_or(DurationMs(0))
        };
        let still = self.free_since.front().map(|since| now.since(*since));
        Some(Fill {
            full_after: full_at.since(began_at),
            taken_per_100_000: self.inside_sum * 100_000
                / (self.samples * self.seats as u64).max(1),
            samples: self.samples,
            taken: free_for.len(),
            free_p50: quantile(50),
            free_p99: quantile(99),
            free_max: quantile(100).max(still.unwrap_or(DurationMs(0))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs samples of (time, active, waiting) on a room with ten seats.
    fn seen(looks: &[(u64, usize, usize)]) -> Option<Fill> {
        let mut meter = FillMeter::new(10);
        for &(at, inside, waiting) in looks {
            meter.look(Timestamp(at), inside, waiting);
        }
        meter.fill(Timestamp(looks.last()?.0))
    }

    #[test]
    fn a_room_that_was_never_full_has_no_fill() {
        assert_eq!(seen(&[(0, 3, 5), (1_000, 9, 5)]), None);
    }

    #[test]
    fn the_mean_has_one_sample_a_second_since_full() {
        let looks = [(0, 0, 9), (500, 10, 9), (700, 1, 9), (1_500, 8, 9)];
        let fill = seen(&looks).unwrap();
        assert_eq!(fill.full_after, DurationMs(500));
        assert_eq!((fill.samples, fill.taken_per_100_000), (2, 90_000));
    }

    #[test]
    fn the_seat_that_is_free_for_longest_is_taken_first() {
        let looks = [
            (0, 10, 9),
            (100, 9, 9),
            (400, 8, 9),
            (600, 9, 9),
            (900, 10, 9),
        ];
        let fill = seen(&looks).unwrap();
        assert_eq!(fill.taken, 2);
        assert_eq!(
            (fill.free_p50, fill.free_max),
            (DurationMs(500), DurationMs(500))
        );
        let looks = [(0, 10, 9), (100, 9, 9), (2_100, 9, 9)];
        assert_eq!(seen(&looks).unwrap().free_max, DurationMs(2_000));
    }

    #[test]
    fn a_seat_may_stay_free_without_waiting_visitors() {
        let looks = [
            (0, 10, 0),
            (100, 9, 0),
            (9_000, 9, 0),
            (9_100, 9, 1),
            (9_300, 10, 0),
        ];
        assert_eq!(seen(&looks).unwrap().free_max, DurationMs(300));
    }
}
