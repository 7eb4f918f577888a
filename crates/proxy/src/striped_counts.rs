//! Counters that all threads add to and that few readers add up.
//!
//! Each thread counts in memory of its own, so that no two processors wait for the same line of
//! memory. A reader adds up, so it must not be on the path of a request.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Most stripes. With more threads than these, some share one.
const STRIPES_MAX: usize = 16;

/// Number of stripes: a power of two, and enough for the workers.
static STRIPES: LazyLock<usize> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, Into::into);
    processors.next_power_of_two().min(STRIPES_MAX)
});

/// Number of threads that have counted something.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Relaxed);
}

/// `N` counters. They never fall, and wrap at 2^64.
#[derive(Debug)]
pub struct StripedCounts<const N: usize>(Box<[Stripe<N>]>);

/// Counters of one thread. Processors fetch lines of memory in pairs of 64 bytes each.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for StripedCounts<N> {
    fn default() -> Self {
        let stripe = |_| Stripe([const { AtomicU64::new(0) }; N]);
        Self((0..*STRIPES).map(stripe).collect())
    }
}

impl<const N: usize> StripedCounts<N> {
    /// Adds to a counter.
    ///
    /// # Panics
    ///
    /// If `at` is not below `N`.
    pub fn add(&self, at: usize, count: u64) {
        let thread = THREAD.with(|thread| *thread);
        // The number of stripes is a power of two.
        let stripe = &self.0[thread & (self.0.len() - 1)];
        stripe.0[at].fetch_add(count, Relaxed);
    }

    /// Returns all counters.
    #[must_use]
    pub fn read(&self) -> [u64; N] {
        let mut sums = [0_u64; N];
        for stripe in &self.0 {
            for (sum, count) in sums.iter_mut().zip(&stripe.0) {
                *sum = sum.wrapping_add(count.load(Relaxed));
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_loses_a_count() {
        let counts = StripedCounts::<3>::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES_MAX {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        counts.add(0, 1);
                        counts.add(2, 3);
                    }
                });
            }
        });
        let each = 2_000 * STRIPES_MAX as u64;
        assert_eq!(counts.read(), [each, 0, 3 * each]);
    }
}
