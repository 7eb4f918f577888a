//! Does it go on fast enough, where it is the other side that is waited for?
//!
//! Time counts only while we wait; a side that is held up by us is not slow. Looked at whenever
//! enough time was waited for, and then counted anew, so that a fast start is no credit for ever.
//! Whoever sends nothing at all is not noticed here, but by idle time-outs.

use std::time::Duration;

use tokio::time::Instant;

/// Time waited for before it is judged: lost packets on a bad line take some seconds.
const LOOK_AFTER: Duration = Duration::from_secs(10);

/// Bytes, and the time that was waited for them.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    bytes_per_second_min: u64,
    waited: Duration,
    bytes: u64,
    waiting_since: Option<Instant>,
}

impl Pace {
    /// Asks for so many bytes a second; 0 = none.
    #[must_use]
    pub(crate) const fn new(bytes_per_second_min: u64) -> Self {
        Self {
            bytes_per_second_min,
            waited: Duration::ZERO,
            bytes: 0,
            waiting_since: None,
        }
    }

    /// What it asks for.
    #[must_use]
    pub(crate) const fn bytes_per_second_min(&self) -> u64 {
        self.bytes_per_second_min
    }

    /// From now on we wait, if we did not before.
    pub(crate) fn wait(&mut self, now: Instant) {
        self.waiting_since.get_or_insert(now);
    }

    /// So many bytes went on without a wait.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// So many bytes went on; whether that is too slow.
    pub(crate) fn went_on(&mut self, bytes: usize, now: Instant) -> bool {
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
    async fn only_waiting_time_counts_and_a_fast_start_is_soon_forgotten() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new(100);
        // Held up by us for a minute.
        assert!(!pace.went_on(1, at(0)));
        assert!(!pace.went_on(1, at(60_000)));
        // Waited for ten seconds, with enough.
        pace.wait(at(60_000));
        pace.wait(at(65_000));
        assert!(!pace.went_on(1_000, at(70_000)));
        // Two bytes a second.
        for second in 70..79 {
            pace.wait(at(second * 1_000));
            assert!(!pace.went_on(2, at(second * 1_000 + 1_000)));
        }
        pace.wait(at(79_000));
        assert!(pace.went_on(2, at(80_000)));
        let mut any = Pace::new(0);
        any.wait(at(0));
        assert!(!any.went_on(0, at(100_000)));
    }
}
