//! Circuit breaker for a store or a server. While it is open, callers fail at once, and one of them
//! probes now and then.
//!
//! Knows no clock and no random numbers; both are arguments.

use anteroom_limit::time::{DurationUs, TimestampUs};

/// Failures that open a circuit, and the pauses that follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pauses {
    /// Failures in a row that open the circuit.
    failures: u32,
    /// First pause; the next ones double.
    first: DurationUs,
    /// The longest pause.
    longest: DurationUs,
}

impl Pauses {
    /// Pauses of a server to which there is no connection. The first is long enough that a server
    /// which restarts sees few attempts, and short enough that a dropped connection costs less than
    /// one sync period. The longest counts in full after an outage: for so long the server is back
    /// and nobody uses it.
    pub const CONNECTING: Self = Self {
        failures: 1,
        first: DurationUs(50_000),
        longest: DurationUs::from_secs(1),
    };

    /// Pauses of a store that grants leases. One lost reply predicts nothing about the next. The
    /// first pause is about what a server needs that only lost its connections.
    pub const LEASES: Self = Self {
        failures: 3,
        first: DurationUs(50_000),
        longest: DurationUs::from_secs(1),
    };
}

/// Circuit breaker's state.
#[derive(Debug)]
pub struct Circuit {
    pauses: Pauses,
    failures: u32,
    until: TimestampUs,
    /// Whether a probe is under way.
    is_probing: bool,
}

impl Circuit {
    /// A closed circuit: nothing has failed yet.
    #[must_use]
    pub const fn new(pauses: Pauses) -> Self {
        Self {
            pauses,
            failures: 0,
            until: TimestampUs(0),
            is_probing: false,
        }
    }

    /// Whether requests must not be sent now.
    #[must_use]
    pub fn is_open(&self, now: TimestampUs) -> bool {
        self.is_lost() && now < self.until
    }

    /// Whether the circuit has opened and no reply has come since.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.failures >= self.pauses.failures
    }

    /// Returns what is left of the pause.
    #[must_use]
    pub const fn left(&self, now: TimestampUs) -> DurationUs {
        self.until.since(now)
    }

    /// Takes note of a request. If it is a probe, no other is sent during the same length of pause.
    pub fn handle_request(&mut self, now: TimestampUs) {
        if self.is_lost() {
            self.until = now + self.pause();
            self.is_probing = true;
        }
    }

    /// Takes note of a reply.
    pub const fn handle_reply(&mut self) {
        self.failures = 0;
        self.is_probing = false;
    }

    /// Takes note of a failure. `random` shortens the pause by up to a half, so that nodes do not
    /// come back all at once. Returns whether the circuit opens with this failure: once per outage.
    pub fn handle_failure(&mut self, now: TimestampUs, random: u64) -> bool {
        // Requests that were in flight together fail together; they do not lengthen the pause.
        if self.is_open(now) && !self.is_probing {
            return false;
        }
        let was_lost = self.is_lost();
        self.failures = self.failures.saturating_add(1);
        self.is_probing = false;
        self.until = now + shortened(self.pause(), random);
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

/// Shortens a pause by up to a half.
fn shortened(DurationUs(pause): DurationUs, random: u64) -> DurationUs {
    let half = u128::from(pause / 2);
    let less = (half * u128::from(random)) >> 64;
    DurationUs(pause.saturating_sub(u64::try_from(less).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_circuit() -> Circuit {
        Circuit::new(Pauses::LEASES)
    }

    fn failed(times: u32) -> (Circuit, TimestampUs) {
        let (mut circuit, mut now) = (lease_circuit(), TimestampUs(0));
        for _ in 0..times {
            now = now.max(circuit.until);
            circuit.handle_failure(now, 0);
        }
        (circuit, now)
    }

    #[test]
    fn an_outage_is_reported_once_despite_a_failure_each_second() {
        let (mut circuit, mut reported) = (lease_circuit(), Vec::new());
        for second in 0..100 {
            // A reply comes between two outages.
            if second == 50 {
                circuit.handle_reply();
            }
            if circuit.handle_failure(TimestampUs(second * 1_000_000), 7) {
                reported.push(second);
            }
        }
        assert_eq!(reported, [2, 52]);
    }

    #[test]
    fn it_opens_at_the_third_failure_in_a_row() {
        assert!(!failed(2).0.is_open(failed(2).1));
        let (mut circuit, now) = failed(3);
        assert!(circuit.is_open(now));
        assert!(circuit.is_lost() && circuit.until.0 > 0);
        circuit.handle_reply();
        assert!(!circuit.is_open(now) && !circuit.is_lost());
        circuit.handle_failure(now, 0);
        assert!(!circuit.is_open(now));
    }

    /// Pauses in milliseconds after each failure that finds the circuit open, without randomness.
    fn pauses_ms(pauses: Pauses, count: u32) -> Vec<u64> {
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
            pauses_ms(Pauses::LEASES, 7),
            [50, 100, 200, 400, 800, 1_000, 1_000]
        );
        assert_eq!(
            pauses_ms(Pauses::CONNECTING, 7),
            [50, 100, 200, 400, 800, 1_000, 1_000]
        );
    }

    #[test]
    fn randomness_shortens_a_pause_by_up_to_a_half() {
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
        circuit.handle_reply();
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
        assert!(circuit.is_open(until), "one probes, the others fail");
        circuit.handle_failure(until + DurationUs(1), 0);
        assert_eq!(
            circuit.until,
            until + DurationUs(100_001),
            "the probe failed"
        );
    }
}
