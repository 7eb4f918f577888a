//! Contention of requests that compare and swap the state of one client. For stores that offer
//! nothing else, and for models of them.
//!
//! Requests of one node queue up. Where another node was faster, a request pauses and tries again;
//! the pause is drawn at random from zero to [`pause_longest`]. Deliberately absent: clocks, and
//! the random draw.

use crate::time::DurationUs;

/// Number of tries. Pauses double, so the last ones outlast some requests each from a few nodes.
/// With fewer tries, requests give up there; with more, they wait longer than counting is worth.
pub const TRIES: u32 = 8;
/// Most requests of one client that wait at once. A server that is a millisecond away serves twice
/// as many in the second that they wait; any more would time out.
pub const WAITING_MAX: usize = 256;
/// Largest limit of a sliding log there. Each request reads and writes the whole log. That many
/// entries are 200 kB, a fifth of the largest value of memcached.
pub const LOG_LONGEST: u32 = 10_000;
/// Least upper bound of the first pause, as fine as timers resolve. The bound is otherwise the time
/// that the try took: with slow messages, a shorter pause would lead to the next conflict.
const PAUSE_FIRST: DurationUs = DurationUs(1_000);
/// Longest pause, so that a request waits for a second in all.
const PAUSE_LONGEST: DurationUs = DurationUs(250_000);

/// Returns the longest pause after `lost` failed tries and one more that took `took`.
#[must_use]
pub fn pause_longest(lost: u32, took: DurationUs) -> DurationUs {
    let first = PAUSE_FIRST.max(took);
    first.times(1 << lost.min(16)).min(PAUSE_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those of `docs/explanation/rate-limit-memcached.md`.
    #[test]
    fn pauses_scale_with_the_tries_and_stay_within_the_wait() {
        for (took_ms, together_ms) in [(1, 127), (5, 565)] {
            let took = DurationUs(took_ms * 1_000);
            let longest = (0..TRIES - 1).map(|lost| pause_longest(lost, took).0);
            assert_eq!(longest.sum::<u64>() / 1_000, together_ms);
        }
    }
}
