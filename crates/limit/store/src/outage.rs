//! Log state of a store's outage: one record when it begins, one when it ends, none in between.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Time without a failure after which a store counts as available again. When one of several
/// servers is down, requests for its clients fail and others succeed; the log must not record each
/// change.
pub const QUIET: Duration = Duration::from_secs(10);

/// Outage of a store. Times count from a moment that the owner chooses.
#[derive(Debug, Default)]
pub struct Outage {
    is_lost: AtomicBool,
    /// Time of the latest failure, in milliseconds.
    failed_at: AtomicU64,
}

impl Outage {
    /// Takes note that a request failed. Returns whether the outage begins with this failure.
    pub fn handle_failure(&self, now: Duration) -> bool {
        self.failed_at.store(millis(now), Relaxed);
        !self.is_lost.swap(true, Relaxed)
    }

    /// Takes note that a request succeeded. `is_unavailable` may know that the store is still
    /// unavailable, as when a reply came from a lease. Returns whether the outage ends with this
    /// reply.
    pub fn handle_reply(&self, now: Duration, is_unavailable: impl FnOnce() -> bool) -> bool {
        let Some(quiet) = self.failed_ago(now) else {
            return false;
        };
        quiet >= QUIET && !is_unavailable() && self.is_lost.swap(false, Relaxed)
    }

    /// Returns the time since the latest failure, or `None` outside of an outage.
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
        assert!(!outage.handle_reply(now, || false));
        assert_eq!(outage.failed_ago(now), None);
        let mut logged = Vec::new();
        for request in 0..2_000 {
            if outage.handle_failure(now) {
                logged.push((request, "gone"));
            }
            now += Duration::from_millis(20);
            if outage.handle_reply(now, || false) {
                logged.push((request, "back"));
            }
        }
        assert_eq!(logged, [(0, "gone")]);
        assert_eq!(outage.failed_ago(now), Some(Duration::from_millis(20)));
        now += QUIET;
        assert!(!outage.handle_reply(now, || true), "decided from a lease");
        assert!(outage.handle_reply(now, || false));
        assert!(!outage.handle_reply(now, || false));
        assert_eq!(outage.failed_ago(now), None);
        assert!(outage.handle_failure(now));
    }
}
