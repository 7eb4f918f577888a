//! Estimates of the wait, and refresh intervals, both from what a node measured and not from the
//! configuration.
//!
//! An estimate is a range. Without measurements there is none.

use crate::queue_position::WaitRange;
use crate::time::{DurationMs, Timestamp};

/// Width of a slot of the history.
const SLOT: DurationMs = DurationMs(5_000);
/// Slots kept: five minutes, so that the slow window smooths over a minute's pattern.
const SLOTS: usize = 60;
/// Slots of the quick window: half a minute.
const QUICK_SLOTS: u64 = 6;
/// Shortest time of measurement before the first estimate.
const MEASURE_FIRST: DurationMs = DurationMs(10_000);
/// Refresh interval at the front of the queue, for those whose turn does not come sooner.
pub const REFRESH_AFTER_FIRST: DurationMs = DurationMs(2_000);
/// Refresh interval far back in the queue.
pub const REFRESH_AFTER_LAST: DurationMs = DurationMs(60_000);

/// Visitors at the front, who refresh most often. Behind them the interval grows by as much for
/// every further sixteen.
const AT_THE_FRONT: u64 = 16;

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

/// Recent admissions of a room, by time.
#[derive(Clone, Debug)]
pub struct Throughput {
    slots: [u32; SLOTS],
    /// Sum of `slots`.
    total: u64,
    newest: u64,
    since: Option<Timestamp>,
}

impl Default for Throughput {
    fn default() -> Self {
        Self {
            slots: [0; SLOTS],
            total: 0,
            newest: 0,
            since: None,
        }
    }
}

impl Throughput {
    /// Counts admissions.
    pub fn handle_admissions(&mut self, count: u32, now: Timestamp) {
        self.advance(now);
        self.slots[index(self.newest)] += count;
        self.total += u64::from(count);
    }

    /// Returns the wait of a visitor with `ahead` people before it.
    #[must_use]
    pub fn wait(&mut self, ahead: u32, now: Timestamp) -> Option<WaitRange> {
        self.advance(now);
        if now.since(self.since?) < MEASURE_FIRST {
            return None;
        }
        let quick = self.time_for(ahead, QUICK_SLOTS, now)?;
        let slow = self.time_for(ahead, SLOTS as u64, now)?;
        let (low, high) = (quick.min(slow), quick.max(slow));
        // A quarter to either side: what one visitor sees of a rate is never exact.
        Some(WaitRange {
            low: DurationMs(low.0 - low.0 / 4),
            middle: DurationMs(low.0.midpoint(high.0)),
            high: DurationMs(high.0 + high.0 / 4),
        })
    }

    /// Returns the wait of each visitor in a `random` room in which `waiting` wait: quartiles.
    #[must_use]
    pub fn wait_by_lot(&mut self, waiting: u32, now: Timestamp) -> Option<WaitRange> {
        self.advance(now);
        if now.since(self.since?) < MEASURE_FIRST {
            return None;
        }
        let all = self.time_for(waiting, SLOTS as u64, now)?;
        Some(WaitRange {
            low: DurationMs(all.0 / 4),
            middle: DurationMs(all.0 / 2),
            high: DurationMs(all.0 / 4 * 3),
        })
    }

    fn time_for(&self, ahead: u32, slots: u64, now: Timestamp) -> Option<DurationMs> {
        let admitted: u64 = if slots == SLOTS as u64 {
            self.total
        } else {
            (0..slots)
                .filter_map(|back| self.newest.checked_sub(back))
                .map(|slot| u64::from(self.slots[index(slot)]))
                .sum()
        };
        if admitted == 0 {
            return None;
        }
        // The newest slot is not over yet.
        let covered = (slots - 1) * SLOT.0 + now.0 % SLOT.0;
        let window = now.since(self.since?).0.min(covered).max(1);
        Some(DurationMs(
            (u64::from(ahead) + 1).saturating_mul(window) / admitted,
        ))
    }

    fn advance(&mut self, now: Timestamp) {
        let slot = now.0 / SLOT.0;
        self.since.get_or_insert(now);
        let skipped = slot.saturating_sub(self.newest).min(SLOTS as u64);
        for back in 0..skipped {
            let ended = core::mem::take(&mut self.slots[index(slot - back)]);
            self.total -= u64::from(ended);
        }
        self.newest = self.newest.max(slot);
    }
}

/// Returns the index of a slot in the ring.
#[expect(
    clippy::cast_possible_truncation,
    reason = "less than SLOTS, which is a usize"
)]
const fn index(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

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
        REFRESH_AFTER_FIRST.times(1 + u64::from(ahead) / AT_THE_FRONT)
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
    fn without_admissions_the_wait_is_unknown() {
        let mut throughput = Throughput::default();
        assert_eq!(throughput.wait(10, Timestamp(0)), None);
        assert_eq!(throughput.wait(10, Timestamp(60_000)), None);
    }

    #[test]
    fn a_steady_rate_gives_a_range_around_the_truth() {
        let mut throughput = Throughput::default();
        for second in 0..120 {
            throughput.handle_admissions(1, Timestamp(second * 1_000));
            throughput.handle_admissions(1, Timestamp(second * 1_000 + 500));
        }
        let wait = throughput.wait(119, Timestamp(120_000)).unwrap();
        assert!(
            wait.low < DurationMs(60_000) && wait.high > DurationMs(60_000),
            "{wait:?}"
        );
        assert!(
            wait.low > DurationMs(40_000) && wait.high < DurationMs(90_000),
            "{wait:?}"
        );
    }

    #[test]
    fn old_admissions_are_forgotten() {
        let mut throughput = Throughput::default();
        throughput.handle_admissions(1, Timestamp(0));
        assert_eq!(throughput.wait(1, Timestamp(400_000)), None);
    }

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
