//! Rate at which waiting visitors give up.
//!
//! Nobody says that they leave. But of those who waited a while ago, some were admitted, some still
//! wait, and the others have given up.

use crate::sync::Snapshot;
use crate::time::{DurationMs, Timestamp};
use crate::watermark::people_before;

/// Time between two counts. Shorter, and chance rules; longer, and the first estimate is late.
const COUNT_EVERY: DurationMs = DurationMs::from_secs(30);
/// Time after which a count is worthless: the node had no snapshot for long.
const COUNT_LATEST: DurationMs = DurationMs::from_secs(120);
/// Time after which all visitors of an arrival are counted.
const ALL_COUNTED: DurationMs = DurationMs::from_secs(10);
/// Fewest waiting visitors whose leaving says something about others.
const PEOPLE_MIN: u32 = 20;
/// Part of a new count in the estimate.
const WEIGHT: u64 = 8;

/// Estimate of the share of waiting visitors who give up in a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivingUp {
    /// Admissions so far.
    admitted: u64,
    /// Time of the first snapshot.
    since: Option<Timestamp>,
    /// Whether many waited then: other nodes know more of them.
    found_queue: bool,
    mark: Option<Mark>,
    /// Millionths in a second; `None` before the first count.
    rate: Option<u64>,
}

/// Visitors who waited at a moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Timestamp,
    /// Rank before which they were counted.
    before: Timestamp,
    waiting: u32,
    admitted: u64,
}

impl GivingUp {
    /// Returns the estimate of a node that knows this rate.
    #[cfg(test)]
    pub(crate) fn known(rate: u64) -> Self {
        Self {
            since: Some(Timestamp::ZERO),
            rate: Some(rate),
            ..Self::default()
        }
    }

    /// Returns the share of waiting visitors who give up in a second, in millionths; 0 before it is
    /// known.
    #[must_use]
    pub fn millionths_per_second(&self) -> u64 {
        self.rate.unwrap_or(0)
    }

    /// Whether this node has watched the queue from its beginning, or for long enough to know it. A
    /// short queue has no rate, however long it is watched.
    #[must_use]
    pub fn is_settled(&self, now: Timestamp) -> bool {
        let has_watched =
            |since: Timestamp| !self.found_queue || now.since(since) > COUNT_EVERY + COUNT_EVERY;
        self.rate.is_some() || self.since.is_some_and(has_watched)
    }

    /// Handles a snapshot, with the admissions since the last one.
    pub fn handle_snapshot(&mut self, snapshot: &Snapshot, admitted: u32) {
        self.admitted += u64::from(admitted);
        let now = snapshot.as_of;
        if self.since.is_none() {
            self.since = Some(now);
            self.found_queue = snapshot.waiting >= PEOPLE_MIN;
        }
        if let Some(mark) = self.mark {
            let passed = now.since(mark.at);
            if passed < COUNT_EVERY {
                return;
            }
            if passed <= COUNT_LATEST {
                self.count(mark, snapshot, passed);
            }
        }
        let before = now - ALL_COUNTED;
        let waiting = people_before(&snapshot.queue, before);
        self.mark = (waiting >= PEOPLE_MIN).then_some(Mark {
            at: now,
            before,
            waiting,
            admitted: self.admitted,
        });
    }

    fn count(&mut self, mark: Mark, snapshot: &Snapshot, passed: DurationMs) {
        let waiting = people_before(&snapshot.queue, mark.before);
        let admitted = self.admitted - mark.admitted;
        let left = u64::from(mark.waiting.saturating_sub(waiting)).saturating_sub(admitted);
        let waited = u64::from(mark.waiting.midpoint(waiting)).saturating_mul(passed.0);
        let rate = left.saturating_mul(1_000_000_000) / waited.max(1);
        self.rate = Some(match self.rate {
            Some(before) => (before * (WEIGHT - 1) + rate) / WEIGHT,
            None => rate,
        });
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;

    /// Returns the snapshot of a second in which so many wait who came long before.
    fn snapshot(at: u64, waiting: i64) -> Snapshot {
        Snapshot {
            as_of: Timestamp(1_000_000 + at * 1_000),
            queue: Arc::new([(Timestamp(500_000), waiting)].into()),
            ..Snapshot::default()
        }
    }

    #[test]
    fn those_who_neither_wait_nor_were_admitted_have_given_up() {
        let mut giving_up = GivingUp::default();
        giving_up.handle_snapshot(&snapshot(0, 1_000), 0);
        giving_up.handle_snapshot(&snapshot(15, 900), 60);
        assert_eq!(giving_up.millionths_per_second(), 0, "too early to tell");
        giving_up.handle_snapshot(&snapshot(30, 800), 40);
        // A hundred of nine hundred, in thirty seconds.
        assert_eq!(giving_up.millionths_per_second(), 3_703);
    }

    #[test]
    fn admissions_alone_are_no_giving_up() {
        let mut giving_up = GivingUp::default();
        for n in 0..10 {
            giving_up.handle_snapshot(&snapshot(n * 30, 1_000 - 50 * n.cast_signed()), 50);
        }
        assert_eq!(giving_up.millionths_per_second(), 0);
    }

    #[test]
    fn a_few_visitors_and_a_long_silence_say_nothing() {
        let mut giving_up = GivingUp::default();
        giving_up.handle_snapshot(&snapshot(0, 19), 0);
        giving_up.handle_snapshot(&snapshot(30, 0), 0);
        assert_eq!(giving_up.millionths_per_second(), 0);
        giving_up.handle_snapshot(&snapshot(60, 1_000), 0);
        giving_up.handle_snapshot(&snapshot(600, 0), 0);
        assert_eq!(giving_up.millionths_per_second(), 0);
    }
}
