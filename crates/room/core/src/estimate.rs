//! Refresh intervals of waiting visitors.

use crate::queue_position::WaitRange;
use crate::time::DurationMs;

/// Refresh interval at the front of the queue, for those whose turn does not come sooner.
pub const REFRESH_AFTER_FIRST: DurationMs = DurationMs(2_000);
/// Refresh interval far back in the queue.
pub const REFRESH_AFTER_LAST: DurationMs = DurationMs(60_000);

/// Visitors at the front, who refresh most often. Behind them the interval grows by as much for
/// every further sixteen.
pub const AT_THE_FRONT: u32 = 16;

/// Time ahead for which slots that come free count as free. Visitors within the watermark have
/// refreshed by then. If it were longer, many would be within it, and the first to refresh would
/// enter before those who came earlier. If it were shorter, free slots would wait for one visitor.
pub const WATERMARK_AHEAD: DurationMs = DurationMs(1_000);

/// Times for which the ledger forecasts free slots. No visitor refreshes later than its turn may
/// come, however slowly the queue moves. The first ones are close together, so that those who are
/// soon to enter refresh in their order.
pub const LOOK_AHEAD: [DurationMs; 15] = [
    DurationMs(500),
    DurationMs(750),
    WATERMARK_AHEAD,
    DurationMs(1_250),
    DurationMs(1_500),
    DurationMs(1_750),
    DurationMs(2_000),
    DurationMs(2_500),
    DurationMs(3_000),
    DurationMs(4_000),
    DurationMs(5_000),
    DurationMs(7_000),
    DurationMs(10_000),
    DurationMs(25_000),
    REFRESH_AFTER_LAST,
];

/// Returns the longest refresh interval of a visitor with `ahead` people before it. `slots` are
/// those that come free before each of [`LOOK_AHEAD`] has passed. The visitor refreshes before the
/// first of these times at which its turn may come.
#[must_use]
pub fn refresh_before_turn(ahead: u32, slots: &[u32; LOOK_AHEAD.len()]) -> DurationMs {
    let mut latest = LOOK_AHEAD[0];
    for (there, after) in slots.iter().zip(LOOK_AHEAD) {
        if ahead < *there {
            break;
        }
        latest = after;
    }
    latest
}

/// Interval at which a waiting page reloads itself without scripts. Shorter, and it interrupts a
/// reader; much longer, and slots that are kept for it stay empty.
pub const PAGE_RELOAD: DurationMs = DurationMs(30_000);

/// Returns the time until the next refresh: short near the front, long far back. `jitter` (any
/// number) spreads visitors who came together.
#[must_use]
pub fn refresh_after(ahead: Option<u32>, wait: Option<WaitRange>, jitter: u64) -> DurationMs {
    let by_wait = match (wait, ahead) {
        (Some(wait), _) => DurationMs(wait.low.0 / 8),
        (None, Some(ahead)) => DurationMs(u64::from(ahead).saturating_mul(20)),
        (None, None) => REFRESH_AFTER_FIRST.times(5),
    };
    // A logout may free a seat at any moment, however slowly the queue has moved.
    let by_position = ahead.map_or(REFRESH_AFTER_LAST, |ahead| {
        REFRESH_AFTER_FIRST.times(1 + u64::from(ahead / AT_THE_FRONT))
    });
    let spread = by_wait
        .min(by_position)
        .clamp(REFRESH_AFTER_FIRST, REFRESH_AFTER_LAST);
    // Visitors who got a response together refresh over half of the interval, so that a refresh is
    // always near; at the front, where all refresh often, over an eighth of it.
    let part = (spread.0 - REFRESH_AFTER_FIRST.0) / 2 + REFRESH_AFTER_FIRST.0 / 8;
    DurationMs(spread.0 + REFRESH_AFTER_FIRST.0 / 16 - jitter % (part + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_refreshes_before_its_turn_may_come() {
        let mut slots = [40; LOOK_AHEAD.len()];
        slots[..4].copy_from_slice(&[2, 10, 10, 12]);
        let latest = [0, 2, 10, 11, 12].map(|ahead| refresh_before_turn(ahead, &slots).0);
        assert_eq!(latest, [500, 500, 1_000, 1_000, 1_250]);
        assert_eq!(refresh_before_turn(40, &slots), REFRESH_AFTER_LAST);
    }

    #[test]
    fn intervals_lie_between_the_front_and_the_back() {
        for ahead in [0, 10, 1_000, 1_000_000] {
            for jitter in [0, 7, u64::MAX] {
                let span = refresh_after(Some(ahead), None, jitter);
                assert!(
                    span >= DurationMs(1_875) && span <= DurationMs(63_750),
                    "{span}"
                );
            }
        }
    }
}
