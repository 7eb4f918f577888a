//! How long will it take, and when should a visitor ask again? Both from what was seen, not from
//! what was configured.
//!
//! An estimate is a range. Where nothing was seen there is none.

use crate::decision::WaitRange;
use crate::time::{DurationMs, Timestamp};

/// Width of a slot of the history.
const SLOT: DurationMs = DurationMs(5_000);
/// Slots kept: five minutes, so that the slow window smooths over a minute's pattern.
const SLOTS: usize = 60;
/// Slots of the quick window: half a minute.
const QUICK: u64 = 6;
/// No estimate before so much time has been watched.
const WATCH_FIRST: DurationMs = DurationMs(10_000);
/// Ask-again interval at the front of the line. Two seconds: a free slot stays empty for one on
/// average.
pub const ASK_AFTER_FIRST: DurationMs = DurationMs(2_000);
/// Ask-again interval far back.
pub const ASK_AFTER_LAST: DurationMs = DurationMs(60_000);

/// How many stand at the front: they ask as often as anybody. Behind them the interval grows by as
/// much for every so many.
const AT_THE_FRONT: u64 = 16;

/// How far ahead is seen which seats will end. Nobody is told to ask again later than its turn may
/// come, however slowly the line has moved so far.
pub const LOOK_AHEAD: [DurationMs; 4] = [
    ASK_AFTER_FIRST,
    DurationMs(10_000),
    DurationMs(25_000),
    ASK_AFTER_LAST,
];

/// The longest interval after which somebody with `ahead` people before it should ask again, by the
/// slots that there will be before each of [`LOOK_AHEAD`] has passed: it asks before the first of
/// those by which its turn may come.
#[must_use]
pub fn ask_before_turn(ahead: u32, slots: &[u32; LOOK_AHEAD.len()]) -> DurationMs {
    let mut latest = ASK_AFTER_FIRST;
    for (there, after) in slots.iter().zip(LOOK_AHEAD) {
        if ahead < *there {
            break;
        }
        latest = after;
    }
    latest
}

/// How often a waiting page loads itself where scripts do not run. Slower than the line moves, so
/// that a reader is not interrupted; much slower, and slots that are kept for it stay empty.
pub const PAGE_RELOAD: DurationMs = DurationMs(30_000);

/// Recent admissions of a room, by time.
#[derive(Clone, Debug)]
pub struct Throughput {
    slots: [u32; SLOTS],
    /// Of all slots.
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
    /// So many more have gone in.
    pub fn handle_admissions(&mut self, count: u32, now: Timestamp) {
        self.advance(now);
        self.slots[index(self.newest)] += count;
        self.total += u64::from(count);
    }

    /// The wait of somebody with `ahead` people before it.
    #[must_use]
    pub fn wait(&mut self, ahead: u32, now: Timestamp) -> Option<WaitRange> {
        self.advance(now);
        if now.since(self.since?) < WATCH_FIRST {
            return None;
        }
        let quick = self.time_for(ahead, QUICK, now)?;
        let slow = self.time_for(ahead, SLOTS as u64, now)?;
        let (low, high) = (quick.min(slow), quick.max(slow));
        // A quarter to either side: what one visitor sees of a rate is never exact.
        Some(WaitRange {
            low: DurationMs(low.0 - low.0 / 4),
            middle: DurationMs(low.0.midpoint(high.0)),
            high: DurationMs(high.0 + high.0 / 4),
        })
    }

    /// The wait of anybody in a `random` room in which `waiting` wait: quartiles.
    #[must_use]
    pub fn wait_by_lot(&mut self, waiting: u32, now: Timestamp) -> Option<WaitRange> {
        self.advance(now);
        if now.since(self.since?) < WATCH_FIRST {
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

/// Where a slot stands in the ring.
#[expect(
    clippy::cast_possible_truncation,
    reason = "less than SLOTS, which is a usize"
)]
const fn index(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

/// When to ask again: often near the front, seldom far back, spread by `jitter` (any number) so
/// that a crowd that came together does not ask together.
#[must_use]
pub fn ask_after(ahead: Option<u32>, wait: Option<WaitRange>, jitter: u64) -> DurationMs {
    let calm = match (wait, ahead) {
        (Some(wait), _) => DurationMs(wait.low.0 / 8),
        (None, Some(ahead)) => DurationMs(u64::from(ahead).saturating_mul(20)),
        (None, None) => ASK_AFTER_FIRST.times(5),
    };
    // A seat may come free at any moment, by a logout, however slowly the line has moved.
    let by_place = ahead.map_or(ASK_AFTER_LAST, |ahead| {
        ASK_AFTER_FIRST.times(1 + u64::from(ahead) / AT_THE_FRONT)
    });
    let spread = calm.min(by_place).clamp(ASK_AFTER_FIRST, ASK_AFTER_LAST);
    // A crowd that was answered together asks over the half of the interval, so that there is
    // always somebody about to ask; at the front, where all ask often, over an eighth of it.
    let part = (spread.0 - ASK_AFTER_FIRST.0) / 2 + ASK_AFTER_FIRST.0 / 8;
    DurationMs(spread.0 + ASK_AFTER_FIRST.0 / 16 - jitter % (part + 1))
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
    fn nobody_is_told_to_ask_after_its_turn_may_have_come() {
        let slots = [2, 10, 10, 40];
        let latest = [0, 2, 10, 39, 40].map(|ahead| ask_before_turn(ahead, &slots).0);
        assert_eq!(latest, [2_000, 2_000, 25_000, 25_000, 60_000]);
        assert_eq!(ask_before_turn(0, &[0; 4]), ASK_AFTER_LAST);
    }

    #[test]
    fn intervals_lie_between_the_front_and_the_back() {
        for ahead in [0, 10, 1_000, 1_000_000] {
            for jitter in [0, 7, u64::MAX] {
                let span = ask_after(Some(ahead), None, jitter);
                assert!(
                    span >= DurationMs(1_875) && span <= DurationMs(63_750),
                    "{span}"
                );
            }
        }
    }
}
