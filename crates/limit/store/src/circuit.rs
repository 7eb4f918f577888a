//! Is a store or a server known to be unavailable? Then callers are told at once, and one of them
//! tries again now and then.
//!
//! Knows no clock and no random numbers; both are arguments.

use anteroom_limit::time::{DurationUs, TimestampUs};

/// When something counts as unavailable, and for how long it is left alone then.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pauses {
    /// So many requests in a row must fail.
    failures: u32,
    /// The first pause; the next ones double.
    first: DurationUs,
    /// The longest pause.
    longest: DurationUs,
}

impl Pauses {
    /// A server to which there is no connection. The first pause is long enough that a server which
    /// restarts is not asked a thousand times meanwhile, and short enough that a dropped connection
    /// costs less than one period of a node. With the longest one, an operator who has repaired a
    /// server sees it used while still looking.
    pub const CONNECTING: Self = Self {
        failures: 1,
        first: DurationUs(50_000),
        longest: DurationUs::from_secs(5),
    };

    /// A store from which calls are lent. One answer that was lost says nothing about the next. The
    /// first pause is about as long as a server needs that only lost its connections.
    pub const LENDING: Self = Self {
        failures: 3,
        first: DurationUs(50_000),
        longest: DurationUs::from_secs(1),
    };
}

/// How something has answered lately.
#[derive(Debug)]
pub struct Circuit {
    pauses: Pauses,
    failures: u32,
    until: TimestampUs,
    /// Somebody tries whether it is back.
    is_tried: bool,
}

impl Circuit {
    /// A circuit that is closed: nothing has failed yet.
    #[must_use]
    pub const fn new(pauses: Pauses) -> Self {
        Self {
            pauses,
            failures: 0,
            until: TimestampUs(0),
            is_tried: false,
        }
    }

    /// Whether it is known to be unavailable.
    #[must_use]
    pub fn is_open(&self, now: TimestampUs) -> bool {
        self.is_lost() && now < self.until
    }

    /// Whether it has not answered since it was given up.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.failures >= self.pauses.failures
    }

    /// How long it is still left alone.
    #[must_use]
    pub const fn left(&self, now: TimestampUs) -> DurationUs {
        self.until.since(now)
    }

    /// Takes note that somebody asks. While it is unavailable, nobody else does for as long as it
    /// was left alone.
    pub fn handle_request(&mut self, now: TimestampUs) {
        if self.is_lost() {
            self.until = now + self.pause();
            self.is_tried = true;
        }
    }

    /// Takes note that it answered.
    pub const fn handle_answer(&mut self) {
        self.failures = 0;
        self.is_tried = false;
    }

    /// Takes note that it did not answer. `random` takes away up to a half of the pause, so that
    /// nodes do not come back all at once. Returns whether it is given up with this failure: once
    /// for an outage.
    pub fn handle_failure(&mut self, now: TimestampUs, random: u64) -> bool {
        // Those that were under way together fail together, and make the pause no longer.
        if self.is_open(now) && !self.is_tried {
            return false;
        }
        let was_lost = self.is_lost();
        self.failures = self.failures.saturating_add(1);
        self.is_tried = false;
        self.until = now + less_by_chance(self.pause(), random);
        self.is_lost() && !was_lost
    }

    fn pause(&self) -> DurationUs {
        let doublings = self.failures.saturating_sub(self.pauses.failures).min(16);
        self.pauses
            .first
            .times(1 << doublings)
            .min(self.pauses.longest)
    }
}

/// The pause without up to a half of it.
fn less_by_chance(DurationUs(pause): DurationUs, random: u64) -> DurationUs {
    let half = u128::from(pause / 2);
    let less = (half * u128::from(random)) >> 64;
    DurationUs(pause.saturating_sub(u64::try_from(less).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lending() -> Circuit {
        Circuit::new(Pauses::LENDING)
    }

    fn failed(times: u32) -> (Circuit, TimestampUs) {
        let (mut circuit, mut now) = (lending(), TimestampUs(0));
        for _ in 0..times {
            now = now.max(circuit.until);
            circuit.handle_failure(now, 0);
        }
        (circuit, now)
    }

    #[test]
    fn an_outage_is_told_once_though_somebody_looks_each_second() {
        let (mut circuit, mut told) = (lending(), Vec::new());
        for second in 0..100 {
            // Answers come between two outages.
            if second == 50 {
                circuit.handle_answer();
            }
            if circuit.handle_failure(TimestampUs(second * 1_000_000), 7) {
                told.push(second);
            }
        }
        assert_eq!(told, [2, 52]);
    }

    #[test]
    fn it_opens_at_the_third_failure_in_a_row() {
        assert!(!failed(2).0.is_open(failed(2).1));
        let (mut circuit, now) = failed(3);
        assert!(circuit.is_open(now));
        assert!(circuit.is_lost() && circuit.until.0 > 0);
        circuit.handle_answer();
        assert!(!circuit.is_open(now) && !circuit.is_lost());
        circuit.handle_failure(now, 0);
        assert!(!circuit.is_open(now));
    }

    /// The pauses after each failure from the first that opens the circuit on, without chance.
    fn waits(pauses: Pauses, count: u32) -> Vec<u64> {
        let (mut circuit, mut now) = (Circuit::new(pauses), TimestampUs(0));
        let after_each = (1..pauses.failures + count).map(|_| {
            now = now.max(circuit.until);
            circuit.handle_failure(now, 0);
            circuit.left(now).0 / 1_000
        });
        let all: Vec<u64> = after_each.collect();
        all[pauses.failures as usize - 1..].to_vec()
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        assert_eq!(
            waits(Pauses::LENDING, 7),
            [50, 100, 200, 400, 800, 1_000, 1_000]
        );
        assert_eq!(
            waits(Pauses::CONNECTING, 9),
            [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]
        );
    }

    #[test]
    fn chance_takes_up_to_a_half_of_a_pause_away() {
        let check = |random: u64, expected_us: u64| {
            let mut circuit = Circuit::new(Pauses::CONNECTING);
            circuit.handle_failure(TimestampUs(7), random);
            assert_eq!(
                circuit.left(TimestampUs(7)),
                DurationUs(expected_us),
                "{random}"
            );
        };
        check(0, 50_000);
        check(1 << 63, 37_500);
        check(u64::MAX, 25_001);
    }

    #[test]
    fn an_answer_makes_the_next_failure_the_first() {
        let mut circuit = Circuit::new(Pauses::CONNECTING);
        let mut now = TimestampUs(0);
        for _ in 0..40 {
            now = now.max(circuit.until);
            circuit.handle_failure(now, 0);
        }
        circuit.handle_answer();
        assert!(!circuit.is_open(now) && !circuit.is_lost());
        circuit.handle_failure(now, 0);
        assert_eq!(circuit.left(now), Pauses::CONNECTING.first);
    }

    #[test]
    fn requests_that_fail_together_count_once_and_one_alone_tries_again() {
        let (mut circuit, now) = failed(3);
        let until = circuit.until;
        circuit.handle_failure(now, 0);
        assert_eq!(circuit.until, until);
        assert!(!circuit.is_open(until));
        circuit.handle_request(until);
        assert!(circuit.is_open(until), "one tries, the others are told");
        circuit.handle_failure(until + DurationUs(1), 0);
        assert_eq!(circuit.until, until + DurationUs(100_001), "it was in vain");
    }
}
