//! How do calls get on with each other that swap the state of one client? For stores that can only
//! compare and swap, and for models of them.
//!
//! Calls of one node wait for each other. Where another node was faster, a call pauses and tries
//! again; the pause is drawn from zero to [`pause_longest`]. Deliberately absent: clocks, and the
//! draw.

use crate::time::DurationUs;

/// How often is tried. Pauses double, so the last ones are longer than a few nodes need for some
/// calls each; fewer tries give up there, and more hold a call for longer than counting it is
/// worth.
pub const TRIES: u32 = 8;
/// How many calls of one client may be there at once. A server that is a millisecond away serves
/// twice as many in the second that they wait; more would wait in vain.
pub const WAITING_MAX: usize = 256;
/// The largest limit that a sliding log can have there. Each call brings the whole log and takes it
/// back; so many entries are 200 kB, a fifth of what memcached takes as one value.
pub const LOG_LONGEST: u32 = 10_000;
/// The first pause is up to what the try took, and at least up to this, which is what timers can
/// tell apart. Where messages are slow, a pause that is not as long as they take would lead into
/// the next conflict.
const PAUSE_FIRST: DurationUs = DurationUs(1_000);
/// No pause is longer: a call waits for a second in all.
const PAUSE_LONGEST: DurationUs = DurationUs(250_000);

/// How long to wait at most after so many tries that came to nothing, and one more that took so
/// long.
#[must_use]
pub fn pause_longest(lost: u32, took: DurationUs) -> DurationUs {
    let first = PAUSE_FIRST.max(took);
    first.times(1 << lost.min(16)).min(PAUSE_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `docs/explanation/rate-limit-memcached.md` says of it.
    #[test]
    fn pauses_together_are_short_where_tries_are_and_never_longer_than_a_call_may_wait() {
        for (took_ms, together_ms) in [(1, 127), (5, 565)] {
            let took = DurationUs(took_ms * 1_000);
            let longest = (0..TRIES - 1).map(|lost| pause_longest(lost, took).0);
            assert_eq!(longest.sum::<u64>() / 1_000, together_ms);
        }
    }
}
