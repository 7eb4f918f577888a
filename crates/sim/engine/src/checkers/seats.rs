//! Checker of invariant 1: active visitors never exceed the seats; after the limit was lowered they
//! never rise.
//!
//! A visitor is active until the end of its ticket, whatever the ledgers count.

use std::collections::{BTreeMap, VecDeque};

use anteroom_room::time::{DurationMs, Timestamp};

/// Time for which departed visitors are remembered.
const LATELY: DurationMs = DurationMs::from_secs(60);

/// Active visitors, by the end of their newest ticket.
#[derive(Debug)]
pub(crate) struct Seats {
    ends: BTreeMap<Timestamp, u32>,
    inside: u32,
    /// Visitors who left lately: time and number.
    left: VecDeque<(Timestamp, u32)>,
    /// Visitors who have left by a fast clock and are active by a slow one.
    doubtful: BTreeMap<Timestamp, u32>,
    limit: u32,
    /// Most active visitors allowed: the limit, or the number of them when it was lowered.
    most: u32,
    lowered_at: Timestamp,
    tolerance: DurationMs,
    inside_max: u32,
    above_max: u32,
}

impl Seats {
    pub(super) fn new(limit: u32, tolerance: DurationMs) -> Self {
        Self {
            ends: BTreeMap::new(),
            inside: 0,
            left: VecDeque::new(),
            doubtful: BTreeMap::new(),
            limit,
            most: limit,
            lowered_at: Timestamp::ZERO,
            tolerance,
            inside_max: 0,
            above_max: 0,
        }
    }

    pub(super) fn handle_limit(&mut self, limit: u32, now: Timestamp) {
        let inside = self.inside(now);
        if limit < self.limit {
            self.lowered_at = now;
        }
        self.limit = limit;
        let perhaps = inside + self.doubtful.values().sum::<u32>();
        self.most = limit.max(perhaps.min(self.most));
    }

    /// Moves the end of a ticket; `before` is zero for a new visitor. Returns the number of active
    /// visitors and the number allowed.
    pub(super) fn handle_move(
        &mut self,
        before: Timestamp,
        after: Timestamp,
        now: Timestamp,
    ) -> (u32, u32) {
        self.remove(before, now);
        if after > now + self.tolerance {
            *self.ends.entry(after).or_insert(0) += 1;
            self.inside += 1;
        } else {
            // Its holder is active by a slow clock, and has left by a fast one.
            self.left.push_back((now, 1));
        }
        self.inside_max = self.inside_max.max(self.inside);
        self.above_max = self.above_max.max(self.inside.saturating_sub(self.most));
        (self.inside, self.most)
    }

    /// Removes a visitor before its end.
    pub(super) fn handle_leave(&mut self, ends_at: Timestamp, now: Timestamp) {
        self.remove(ends_at, now);
        self.left.push_back((now, 1));
        self.note_fall();
    }

    /// Returns the number of visitors who are active or left within the last `lately`, which is at
    /// most [`LATELY`].
    pub(crate) fn inside_lately(&mut self, lately: DurationMs, now: Timestamp) -> u32 {
        let inside = self.inside(now);
        let since = now - lately;
        let left = self.left.iter().filter(|(at, _)| *at > since);
        left.fold(inside, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Returns the number of active visitors.
    pub(crate) fn inside(&mut self, now: Timestamp) -> u32 {
        self.expire(now);
        self.inside
    }

    /// Returns the time at which the limit was last lowered.
    pub(super) fn lowered_at(&self) -> Timestamp {
        self.lowered_at
    }

    /// Returns the number of active visitors allowed: the limit, or their number when it was
    /// lowered.
    pub(super) fn most(&self) -> u32 {
        self.most
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the most active visitors at once, and the largest excess over the number allowed.
    pub(crate) fn highest(&self) -> (u32, u32) {
        (self.inside_max, self.above_max)
    }

    fn remove(&mut self, end: Timestamp, now: Timestamp) {
        self.expire(now);
        let Some(count) = self.ends.get_mut(&end) else {
            return;
        };
        *count -= 1;
        self.inside -= 1;
        if *count == 0 {
            self.ends.remove(&end);
        }
    }

    fn expire(&mut self, now: Timestamp) {
        let over = now + self.tolerance;
        let surely = now - self.tolerance;
        while let Some(first) = self.ends.first_entry().filter(|first| *first.key() <= over) {
            let (end, count) = first.remove_entry();
            self.inside -= count;
            self.left.push_back((now, count));
            *self.doubtful.entry(end).or_insert(0) += count;
        }
        while let Some(first) = self.doubtful.first_entry() {
            if *first.key() > surely {
                break;
            }
            first.remove();
        }
        while self.left.front().is_some_and(|(at, _)| *at + LATELY < now) {
            self.left.pop_front();
        }
        self.note_fall();
    }

    fn note_fall(&mut self) {
        if self.most > self.limit {
            let perhaps = self.inside + self.doubtful.values().sum::<u32>();
            self.most = self.limit.max(perhaps.min(self.most));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_expire_move_and_are_freed_by_leaving() {
        let mut seats = Seats::new(2, DurationMs(0));
        let at = |ms| Timestamp(ms);
        assert_eq!(seats.handle_move(at(0), at(100), at(1)), (1, 2));
        assert_eq!(seats.handle_move(at(0), at(200), at(2)), (2, 2));
        assert_eq!(seats.handle_move(at(100), at(300), at(3)), (2, 2));
        assert_eq!(seats.handle_move(at(0), at(300), at(4)), (3, 2));
        assert_eq!(seats.highest(), (3, 1));
        assert_eq!(seats.inside(at(200)), 2);
        seats.handle_leave(at(300), at(201));
        assert_eq!(seats.inside(at(201)), 1);
        assert_eq!(seats.inside(at(300)), 0);
    }

    #[test]
    fn after_a_lowering_no_visitor_enters_until_there_is_room() {
        let mut seats = Seats::new(5, DurationMs(0));
        for end in 1..=5 {
            seats.handle_move(Timestamp(0), Timestamp(end * 100), Timestamp(1));
        }
        seats.handle_limit(3, Timestamp(2));
        assert_eq!(
            seats.handle_move(Timestamp(500), Timestamp(600), Timestamp(3)),
            (5, 5)
        );
        assert_eq!(seats.inside(Timestamp(100)), 4);
        assert_eq!(
            seats.handle_move(Timestamp(0), Timestamp(900), Timestamp(101)),
            (5, 4)
        );
    }
}
