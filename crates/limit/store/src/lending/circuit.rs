//! Is the store known to be away? Then callers are told at once, and one of them tries again now
//! and then.
//!
//! Knows no clock and no randomness; both are arguments.

use anteroom_limit::time::{MicroSpan, Micros};

/// So many requests in a row must fail. One answer that was lost says nothing about the next.
const FAILURES: u32 = 3;
/// How long the store is left alone then. About as long as a server needs that only lost its
/// connections.
const FIRST: MicroSpan = MicroSpan(50_000);
/// At most: whoever has mended it sees it used while still looking.
const LONGEST: MicroSpan = MicroSpan::from_secs(1);

/// How the store has answered lately.
#[derive(Debug, Default)]
pub(crate) struct Circuit {
    failures: u32,
    until: Micros,
    /// Somebody tries whether it is back.
    is_tried: bool,
}

impl Circuit {
    /// Whether it is known to be away.
    pub(crate) fn is_open(&self, now: Micros) -> bool {
        self.is_lost() && now < self.until
    }

    /// Whether it has not answered since it was given up.
    pub(crate) const fn is_lost(&self) -> bool {
        self.failures >= FAILURES
    }

    /// Takes note that somebody asks. While the store is away, nobody else does for as long as it
    /// was left alone.
    pub(crate) fn handle_request(&mut self, now: Micros) {
        if self.is_lost() {
            self.until = now + self.pause();
            self.is_tried = true;
        }
    }

    /// Takes note that it answered.
    pub(crate) fn handle_answer(&mut self) {
        self.failures = 0;
        self.is_tried = false;
    }

    /// Takes note that it did not. `random` takes away up to a half of the pause, so that nodes do
    /// not come back all at once. Says whether it is given up with this one: once for an outage.
    pub(crate) fn handle_failure(&mut self, now: Micros, random: u64) -> bool {
        // Those that were under way together fail together, and make the pause no longer.
        if self.is_open(now) && !self.is_tried {
            return false;
        }
        let was_lost = self.is_lost();
        self.failures = self.failures.saturating_add(1);
        self.is_tried = false;
        let pause = self.pause().0;
        self.until = now + MicroSpan(pause - random % (pause / 2));
        self.is_lost() && !was_lost
    }

    fn pause(&self) -> MicroSpan {
        let doublings = self.failures.saturating_sub(FAILURES).min(16);
        FIRST.times(1 << doublings).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(times: u32) -> (Circuit, Micros) {
        let (mut circuit, mut now) = (Circuit::default(), Micros(0));
        for _ in 0..times {
            now = now.max(circuit.until);
            circuit.handle_failure(now, 0);
        }
        (circuit, now)
    }

    #[test]
    fn an_outage_is_told_once_though_somebody_looks_each_second() {
        let (mut circuit, mut told) = (Circuit::default(), Vec::new());
        for second in 0..100 {
            // Answers come between two outages.
            if second == 50 {
                circuit.handle_answer();
            }
            if circuit.handle_failure(Micros(second * 1_000_000), 7) {
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

    #[test]
    fn pauses_double_up_to_a_second_less_a_random_half() {
        let pause = |times: u32, random| {
            let (mut circuit, now) = failed(times - 1);
            let now = now.max(circuit.until);
            circuit.handle_failure(now, random);
            circuit.until.since(now).0
        };
        let pauses: Vec<u64> = (3..10).map(|times| pause(times, 0)).collect();
        assert_eq!(
            pauses,
            [
                50_000, 100_000, 200_000, 400_000, 800_000, 1_000_000, 1_000_000
            ]
        );
        assert_eq!(pause(3, 24_999), 25_001);
        assert_eq!(pause(3, 25_000), 50_000);
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
        circuit.handle_failure(until + MicroSpan(1), 0);
        assert_eq!(circuit.until, until + MicroSpan(100_001), "it was in vain");
    }
}
