//! Checker of invariant 2: admissions of a calendar minute never exceed its limit.
//!
//! The ticket names the minute of an admission.

use std::collections::BTreeMap;

use anteroom_room::time::{Minute, Timestamp};

/// Admissions by minute, with the highest limit of any node in that minute.
#[derive(Debug)]
pub(crate) struct Rate {
    minutes: BTreeMap<Minute, Counted>,
    limit: u32,
    count_max: u32,
    above_max: u32,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    count: u32,
    limit: u32,
}

impl Rate {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            minutes: BTreeMap::new(),
            limit,
            count_max: 0,
            above_max: 0,
        }
    }

    pub(super) fn handle_limit(&mut self, limit: u32, now: Timestamp) {
        let before = std::mem::replace(&mut self.limit, limit);
        let highest = limit.max(before);
        let counted = self.entry(now.minute());
        counted.limit = counted.limit.max(highest);
        // Clocks of nodes may be a little ahead.
        if let Some(next) = self.minutes.get_mut(&now.minute().next()) {
            next.limit = next.limit.max(highest);
        }
    }

    /// Counts an admission. Returns the admissions of its minute and the limit of that minute.
    pub(super) fn count(&mut self, minute: Minute) -> (u32, u32) {
        let counted = self.entry(minute);
        counted.count += 1;
        let Counted { count, limit } = *counted;
        self.count_max = self.count_max.max(count);
        self.above_max = self.above_max.max(count.saturating_sub(limit));
        (count, limit)
    }

    /// Returns the admissions of a minute until now.
    pub(crate) fn admitted_in(&self, minute: Minute) -> u32 {
        self.minutes.get(&minute).map_or(0, |counted| counted.count)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the most admissions of a minute, and the largest excess over the limit.
    pub(crate) fn highest(&self) -> (u32, u32) {
        (self.count_max, self.above_max)
    }

    fn entry(&mut self, minute: Minute) -> &mut Counted {
        let limit = self.limit;
        self.minutes
            .entry(minute)
            .or_insert(Counted { count: 0, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_the_highest_limit_that_was_in_force_in_it() {
        let mut rate = Rate::new(2);
        let minute = Timestamp(60_000).minute();
        assert_eq!(rate.count(minute), (1, 2));
        rate.handle_limit(1, Timestamp(61_000));
        assert_eq!(rate.count(minute), (2, 2));
        assert_eq!(rate.count(minute), (3, 2));
        assert_eq!(rate.count(minute.next()), (1, 1));
        assert_eq!(rate.highest(), (3, 1));
        assert_eq!(rate.admitted_in(minute), 3);
    }
}
