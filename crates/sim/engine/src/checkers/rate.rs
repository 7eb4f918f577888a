//! Checker of invariant 2: admissions of a calendar minute never exceed its limit, and those of any
//! true second never exceed a tenth of it. With a sliding window, no 60 s exceed it either.
//!
//! The ticket names the minute of an admission. Seconds are those of true time.

use std::collections::{BTreeMap, VecDeque};

use anteroom_room::time::{DurationMs, Minute, Timestamp};

const SECOND: DurationMs = DurationMs(1_000);
const MINUTE: DurationMs = DurationMs(60_000);

/// Admissions by minute, with the highest limit of any node in that minute.
#[derive(Debug)]
pub(crate) struct Rate {
    /// True times of the admissions in the last minute.
    recent: VecDeque<Timestamp>,
    second: Ceiling,
    minute: Ceiling,
    minutes: BTreeMap<Minute, Counted>,
    limit: u32,
    count_max: u32,
    above_max: u32,
    second_max: u32,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    count: u32,
    limit: u32,
}

/// Limit of a window of true time, with the limits before. Leases under those may still be used.
#[derive(Debug)]
struct Ceiling {
    length: DurationMs,
    /// Longest time for which a lease may be used.
    hold: DurationMs,
    /// Limits by the time since which they hold.
    limits: Vec<(Timestamp, u32)>,
}

/// More admissions than a window of true time allows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Excess {
    pub(crate) count: u32,
    pub(crate) limit: u32,
    pub(crate) length: DurationMs,
}

/// Returns the most admissions in any second: a tenth of a minute's. Rooms with few admissions may
/// admit three at once.
fn per_second(per_minute: u32) -> u32 {
    (per_minute / 10).max(3).min(per_minute)
}

/// Returns the most admissions in any 60 s: no number, unless the window slides.
fn per_window(per_minute: u32, is_sliding: bool) -> u32 {
    if is_sliding { per_minute } else { u32::MAX }
}

impl Ceiling {
    fn new(length: DurationMs, hold: DurationMs, limit: u32) -> Self {
        Self {
            length,
            hold,
            limits: vec![(Timestamp::ZERO, limit)],
        }
    }

    fn change(&mut self, limit: u32, now: Timestamp) {
        if self.limits.last().is_none_or(|(_, known)| *known != limit) {
            self.limits.push((now, limit));
        }
    }

    /// Returns the highest limit that an admission in a window until `now` may go by.
    fn highest(&self, now: Timestamp) -> u32 {
        let from = now - self.length - self.hold;
        let ends = self.limits.iter().skip(1).map(|(since, _)| *since);
        let ends = ends.chain([Timestamp::NEVER]);
        let in_force = self.limits.iter().zip(ends).filter(|(_, end)| *end > from);
        in_force.map(|((_, limit), _)| *limit).max().unwrap_or(0)
    }

    /// Returns how many of these admissions are in the window that ends at `now`.
    fn count(&self, recent: &VecDeque<Timestamp>, now: Timestamp) -> u32 {
        let newest = recent.iter().rev();
        let within = newest.take_while(|at| now.since(**at) < self.length);
        u32::try_from(within.count()).unwrap_or(u32::MAX)
    }

    fn excess(&self, recent: &VecDeque<Timestamp>, now: Timestamp) -> Option<Excess> {
        let limit = self.highest(now);
        if limit == u32::MAX {
            return None;
        }
        let count = self.count(recent, now);
        (count > limit).then_some(Excess {
            count,
            limit,
            length: self.length,
        })
    }
}

impl Rate {
    /// Makes the checker. No lease is used for longer than `hold`.
    pub(super) fn new(limit: u32, is_sliding: bool, hold: DurationMs) -> Self {
        Self {
            recent: VecDeque::new(),
            second: Ceiling::new(SECOND, hold, per_second(limit)),
            minute: Ceiling::new(MINUTE, hold, per_window(limit, is_sliding)),
            minutes: BTreeMap::new(),
            limit,
            count_max: 0,
            above_max: 0,
            second_max: 0,
        }
    }

    pub(super) fn handle_limit(&mut self, limit: u32, is_sliding: bool, now: Timestamp) {
        self.second.change(per_second(limit), now);
        self.minute.change(per_window(limit, is_sliding), now);
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

    /// Counts an admission at a true time. Returns the window that it exceeds.
    pub(super) fn count_at(&mut self, now: Timestamp) -> Option<Excess> {
        let is_old = |at: &Timestamp| now.since(*at) >= MINUTE;
        while self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.second_max = self.second_max.max(self.second.count(&self.recent, now));
        let second = self.second.excess(&self.recent, now);
        second.or_else(|| self.minute.excess(&self.recent, now))
    }

    /// Whether one more admission now would keep to the limits of the last second, and of the last
    /// 60 s where the window slides.
    pub(crate) fn has_room_now(&self, now: Timestamp) -> bool {
        let has_room = |window: &Ceiling| {
            let limit = window.limits.last().map_or(0, |(_, limit)| *limit);
            window.count(&self.recent, now) < limit
        };
        has_room(&self.second) && has_room(&self.minute)
    }

    /// Returns the admissions of a minute until now.
    pub(crate) fn admitted_in(&self, minute: Minute) -> u32 {
        self.minutes.get(&minute).map_or(0, |counted| counted.count)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the most admissions of any second.
    pub(crate) fn most_in_a_second(&self) -> u32 {
        self.second_max
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
        let mut rate = Rate::new(2, false, DurationMs::ZERO);
        let minute = Timestamp(60_000).minute();
        assert_eq!(rate.count(minute), (1, 2));
        rate.handle_limit(1, false, Timestamp(61_000));
        assert_eq!(rate.count(minute), (2, 2));
        assert_eq!(rate.count(minute), (3, 2));
        assert_eq!(rate.count(minute.next()), (1, 1));
        assert_eq!(rate.highest(), (3, 1));
        assert_eq!(rate.admitted_in(minute), 3);
    }

    #[test]
    fn a_second_has_a_tenth_of_a_minutes_admissions_and_never_fewer_than_three() {
        for (per_minute, expected) in [(1, 1), (2, 2), (3, 3), (29, 3), (39, 3), (40, 4), (120, 12)]
        {
            assert_eq!(per_second(per_minute), expected, "{per_minute}");
        }
        let mut rate = Rate::new(40, false, DurationMs::ZERO);
        let mut counted = |at| rate.count_at(Timestamp(at)).map(|excess| excess.count);
        assert_eq!([0, 0, 0, 999].map(&mut counted), [None; 4]);
        assert_eq!(counted(999), Some(5));
        assert_eq!(counted(1_000), None);
        assert_eq!(counted(1_998), None);
        assert_eq!(counted(1_998), Some(5));
    }

    #[test]
    fn a_sliding_window_has_a_minutes_admissions() {
        let mut rate = Rate::new(3, true, DurationMs::ZERO);
        let mut counted = |at| rate.count_at(Timestamp(at)).map(|excess| excess.count);
        assert_eq!([0, 20_000, 40_000].map(&mut counted), [None; 3]);
        assert_eq!(counted(59_999), Some(4));
        assert_eq!(counted(80_000), None);
    }

    #[test]
    fn leases_under_an_earlier_limit_may_be_used_until_they_end() {
        let mut rate = Rate::new(100, false, DurationMs(5_000));
        rate.handle_limit(40, false, Timestamp(10_000));
        assert_eq!(rate.second.highest(Timestamp(15_999)), 10);
        assert_eq!(rate.second.highest(Timestamp(16_000)), 4);
        rate.handle_limit(40, true, Timestamp(20_000));
        assert_eq!(rate.minute.highest(Timestamp(84_999)), u32::MAX);
        assert_eq!(rate.minute.highest(Timestamp(85_000)), 40);
    }
}
