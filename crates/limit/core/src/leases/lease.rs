//! Leases of one client on a node, each with its own end.
//!
//! A new lease arrives before the old one is used up, so there can be two. When a third arrives,
//! the older two merge into one that ends when the first of them ends: a shorter lease is safe, a
//! longer one is not.

use crate::time::TimestampUs;

/// Requests that may be spent until `ends_at`.
///
/// # Invariants
///
/// - `used <= granted`. A lease that has ended gives nothing, whatever is left in it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Lease {
    pub(super) granted: u32,
    pub(super) used: u32,
    pub(super) ends_at: TimestampUs,
}

/// Leases of one client: at most two.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Leases {
    older: Lease,
    newer: Lease,
    /// Latest end of a lease that has been removed. Requests taken before it may have used that
    /// lease.
    ended_at: TimestampUs,
}

impl Lease {
    fn left(&self, now: TimestampUs) -> u32 {
        if now < self.ends_at {
            self.granted - self.used
        } else {
            0
        }
    }

    /// Takes as many of `requests` as it has and returns how many are missing.
    fn take(&mut self, now: TimestampUs, requests: u32) -> u32 {
        let taken = self.left(now).min(requests);
        self.used += taken;
        requests - taken
    }

    /// Undoes up to `requests` taken requests and returns how many are left to undo.
    fn put_back(&mut self, now: TimestampUs, requests: u32) -> u32 {
        if now >= self.ends_at {
            return requests;
        }
        let back = self.used.min(requests);
        self.used -= back;
        requests - back
    }
}

impl Leases {
    /// Returns what can be spent at `now`.
    pub(super) fn left(&self, now: TimestampUs) -> u32 {
        let left = self.older.left(now);
        left.saturating_add(self.newer.left(now))
    }

    /// Takes all of `requests`, from the lease that ends first, or none. Returns whether it did.
    pub(super) fn take(&mut self, now: TimestampUs, requests: u32) -> bool {
        if requests > self.left(now) {
            return false;
        }
        let missing = self.older.take(now, requests);
        self.newer.take(now, missing);
        true
    }

    /// Undoes requests that were taken at `taken_at`. If a lease has ended since, they may have
    /// used that one, and another would then give more than it has. So nothing is undone in that
    /// case.
    pub(super) fn put_back(&mut self, now: TimestampUs, taken_at: TimestampUs, requests: u32) {
        if !self.have_run_since(now, taken_at) {
            return;
        }
        let left = self.older.put_back(now, requests);
        self.newer.put_back(now, left);
    }

    /// Whether everything taken since `taken_at` came from leases that have not ended.
    pub(super) fn have_run_since(&self, now: TimestampUs, taken_at: TimestampUs) -> bool {
        let ends = [self.older.ends_at, self.newer.ends_at];
        let mut ended = ends.into_iter().filter(|ends_at| *ends_at <= now);
        taken_at >= self.ended_at && ended.all(|ended_at| taken_at >= ended_at)
    }

    /// Adds a lease. Ended leases go, and a third one merges the older two.
    pub(super) fn add(&mut self, now: TimestampUs, lease: Lease) {
        for one in [&mut self.older, &mut self.newer] {
            if one.ends_at <= now {
                self.ended_at = self.ended_at.max(one.ends_at);
                *one = Lease::default();
            }
        }
        if self.older.granted > 0 && self.newer.granted > 0 {
            self.older = Lease {
                granted: self.older.granted.saturating_add(self.newer.granted),
                used: self.older.used.saturating_add(self.newer.used),
                ends_at: self.older.ends_at.min(self.newer.ends_at),
            };
        } else if self.newer.granted > 0 {
            self.older = self.newer;
        }
        self.newer = lease;
        if self.older.granted > 0 && self.newer.ends_at < self.older.ends_at {
            core::mem::swap(&mut self.older, &mut self.newer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(granted: u32, ends_at: u64) -> Lease {
        Lease {
            granted,
            used: 0,
            ends_at: TimestampUs(ends_at),
        }
    }

    fn leases(each: &[(u32, u64)]) -> Leases {
        let mut leases = Leases::default();
        for &(granted, ends_at) in each {
            leases.add(TimestampUs(0), lease(granted, ends_at));
        }
        leases
    }

    #[test]
    fn an_ended_lease_gives_nothing_even_with_requests_left() {
        let mut leases = leases(&[(2, 10)]);
        assert!(leases.take(TimestampUs(9), 1));
        assert!(!leases.take(TimestampUs(10), 1));
        assert_eq!(leases.left(TimestampUs(9)), 1);
    }

    #[test]
    fn the_lease_that_ends_first_is_spent_first() {
        for each in [[(2, 10), (3, 20)], [(3, 20), (2, 10)]] {
            let mut leases = leases(&each);
            assert!(leases.take(TimestampUs(0), 3));
            assert_eq!(leases.left(TimestampUs(10)), 2);
            assert!(!leases.take(TimestampUs(0), 3));
            assert!(leases.take(TimestampUs(0), 2));
        }
    }

    #[test]
    fn of_three_leases_the_older_two_end_together() {
        let leases = leases(&[(2, 10), (3, 20), (4, 30)]);
        assert_eq!(leases.left(TimestampUs(9)), 9);
        assert_eq!(leases.left(TimestampUs(10)), 4);
        assert_eq!(leases.left(TimestampUs(30)), 0);
    }

    #[test]
    fn a_refund_counts_only_while_its_lease_may_run() {
        let mut leases = leases(&[(2, 10), (3, 20)]);
        leases.take(TimestampUs(0), 4);
        leases.put_back(TimestampUs(9), TimestampUs(0), 1);
        assert_eq!(leases.left(TimestampUs(9)), 2);
        assert_eq!(
            leases.left(TimestampUs(10)),
            1,
            "into the lease that ends first"
        );
        leases.put_back(TimestampUs(10), TimestampUs(9), 4);
        assert_eq!(leases.left(TimestampUs(10)), 1);
        leases.take(TimestampUs(10), 1);
        leases.put_back(TimestampUs(11), TimestampUs(10), 2);
        assert_eq!(leases.left(TimestampUs(11)), 2);
        leases.add(TimestampUs(30), lease(1, 40));
        leases.take(TimestampUs(30), 1);
        leases.put_back(TimestampUs(31), TimestampUs(19), 1);
        assert_eq!(
            leases.left(TimestampUs(31)),
            0,
            "it may have used the lease that ended at 20"
        );
        leases.put_back(TimestampUs(31), TimestampUs(20), 1);
        assert_eq!(leases.left(TimestampUs(31)), 1, "nothing has ended since");
    }
}
