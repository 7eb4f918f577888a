//! Minimum rate of a transfer, counted only while the gateway waits for the other side.
//!
//! A side that the gateway holds up is not slow. The rate is checked after enough waiting time, and
//! then counted anew, so that a fast start is not a lasting credit. A side that sends nothing at
//! all is caught by idle timeouts, not here.

use std::time::Duration;

use tokio::time::Instant;

/// Waiting time before the rate is checked: lost packets on a bad link take some seconds.
const LOOK_AFTER: Duration = Duration::from_secs(10);

/// Transferred bytes and the waiting time for them.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    bytes_per_second_min: u64,
    waited: Duration,
    bytes: u64,
    waiting_since: Option<Instant>,
}

impl Pace {
    /// Creates a check of a minimum rate; 0 means none.
    #[must_use]
    pub(crate) const fn new(bytes_per_second_min: u64) -> Self {
        Self {
            bytes_per_second_min,
            waited: Duration::ZERO,
            bytes: 0,
            waiting_since: None,
        }
    }

    /// Returns the minimum rate, in bytes per second.
    #[must_use]
    pub(crate) const fn bytes_per_second_min(&self) -> u64 {
        self.bytes_per_second_min
    }

    /// Begins to wait, if the gateway does not wait already.
    pub(crate) fn wait(&mut self, now: Instant) {
        self.waiting_since.get_or_insert(now);
    }

    /// Counts bytes that were transferred without waiting.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Counts bytes that were transferred. Returns whether the rate is too low.
    pub(crate) fn is_too_slow(&mut self, bytes: usize, now: Instant) -> bool {
        if let Some(since) = self.waiting_since.take() {
            self.waited += now.duration_since(since);
        }
        self.note(bytes);
        if self.waited < LOOK_AFTER {
            return false;
        }
        let wanted = self
            .bytes_per_second_min
            .saturating_mul(self.waited.as_secs());
        let is_slow = self.bytes < wanted;
        self.waited = Duration::ZERO;
        self.bytes = 0;
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_waiting_time_counts_and_a_fast_start_is_no_credit() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new(100);
        // The gateway holds up the transfer for a minute.
        assert!(!pace.is_too_slow(1, at(0)));
        assert!(!pace.is_too_slow(1, at(60_000)));
        // Ten seconds of waiting, with enough bytes.
        pace.wait(at(60_000));
        pace.wait(at(65_000));
        assert!(!pace.is_too_slow(1_000, at(70_000)));
        // Two bytes per second.
        for second in 70..79 {
            pace.wait(at(second * 1_000));
            assert!(!pace.is_too_slow(2, at(second * 1_000 + 1_000)));
        }
        pace.wait(at(79_000));
        assert!(pace.is_too_slow(2, at(80_000)));
        let mut any = Pace::new(0);
        any.wait(at(0));
        assert!(!any.is_too_slow(0, at(100_000)));
    }
}
