//! Is a store away, as its calls see it? So that a log says when that begins, and when it is over,
//! and nothing in between.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A store is back when it has not failed for so long. Where one of several servers is away, calls
/// of its clients fail and others do not, as fast as they come: the log must not say so of each.
pub const QUIET: Duration = Duration::from_secs(10);

/// Whether a store is away. Times are those since whoever asks has begun.
#[derive(Debug, Default)]
pub struct Outage {
    is_lost: AtomicBool,
    /// Milliseconds.
    failed_at: AtomicU64,
}

impl Outage {
    /// A call has failed. Says whether the store is away since this one.
    pub fn handle_failure(&self, now: Duration) -> bool {
        self.failed_at.store(millis(now), Relaxed);
        !self.is_lost.swap(true, Relaxed)
    }

    /// A call was answered, by a store of which `is_away` may know better. Says whether it is back
    /// with this answer.
    pub fn handle_answer(&self, now: Duration, is_away: impl FnOnce() -> bool) -> bool {
        let Some(quiet) = self.failed_ago(now) else {
            return false;
        };
        quiet >= QUIET && !is_away() && self.is_lost.swap(false, Relaxed)
    }

    /// How long ago a call failed last, if the store is not known to be back since.
    #[must_use]
    pub fn failed_ago(&self, now: Duration) -> Option<Duration> {
        let ago = || millis(now).saturating_sub(self.failed_at.load(Relaxed));
        self.is_lost
            .load(Relaxed)
            .then(ago)
            .map(Duration::from_millis)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_of_one_of_several_servers_is_reported_once() {
        let outage = Outage::default();
        let mut now = Duration::ZERO;
        assert!(!outage.handle_answer(now, || false));
        assert_eq!(outage.failed_ago(now), None);
        let mut told = Vec::new();
        for call in 0..2_000 {
            if outage.handle_failure(now) {
                told.push((call, "gone"));
            }
            now += Duration::from_millis(20);
            if outage.handle_answer(now, || false) {
                told.push((call, "back"));
            }
        }
        assert_eq!(told, [(0, "gone")]);
        assert_eq!(outage.failed_ago(now), Some(Duration::from_millis(20)));
        now += QUIET;
        assert!(!outage.handle_answer(now, || true), "that was lent");
        assert!(outage.handle_answer(now, || false));
        assert!(!outage.handle_answer(now, || false));
        assert_eq!(outage.failed_ago(now), None);
        assert!(outage.handle_failure(now));
    }
}
