//! Promise 1: visitors inside never exceed the seats; after a lowering they never rise.
//!
//! Inside is whoever has a ticket whose end has not come, whatever anybody else counts.

use std::collections::{BTreeMap, VecDeque};

use anteroom_room::time::{DurationMs, Timestamp};

/// How long it is remembered who has left.
const LATELY: DurationMs = DurationMs::from_secs(60);

/// Who is inside, by the end of their newest ticket.
#[derive(Debug)]
pub(crate) struct Seats {
    ends: BTreeMap<Timestamp, u32>,
    inside: u32,
    /// Who has left lately: when and how many.
    left: VecDeque<(Timestamp, u32)>,
    /// Those who are outside by a fast clock and may be inside by a slow one.
    doubtful: BTreeMap<Timestamp, u32>,
    limit: u32,
    /// What may not be exceeded: the limit, or what was inside when it was lowered.
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

    /// A ticket's end moved; `before` is zero for somebody who had none. Returns how many are
    /// inside now and how many may be.
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
            // By a slow clock its holder is inside, by a fast one it has left.
            self.left.push_back((now, 1));
        }
        self.inside_max = self.inside_max.max(self.inside);
        self.above_max = self.above_max.max(self.inside.saturating_sub(self.most));
        (self.inside, self.most)
    }

    /// Somebody left before its end.
    pub(super) fn handle_leave(&mut self, ends_at: Timestamp, now: Timestamp) {
        self.remove(ends_at, now);
        self.left.push_back((now, 1));
        self.note_fall();
    }

    /// How many are inside or have left within the last `lately`, which is at most [`LATELY`].
    pub(crate) fn inside_lately(&mut self, lately: DurationMs, now: Timestamp) -> u32 {
        let inside = self.inside(now);
        let since = now - lately;
        let left = self.left.iter().filter(|(at, _)| *at > since);
        left.fold(inside, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// How many are inside.
    pub(crate) fn inside(&mut self, now: Timestamp) -> u32 {
        self.expire(now);
        self.inside
    }

    /// When the limit was lowered last.
    pub(super) fn lowered_at(&self) -> Timestamp {
        self.lowered_at
    }

    /// How many may be inside: the limit, or what was inside when it was lowered.
    pub(super) fn most(&self) -> u32 {
        self.most
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// The most that were inside at once, and the most by which that was too many.
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
    fn seats_end_by_themselves_move_and_leave() {
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
    fn after_a_lowering_nobody_enters_until_there_is_room() {
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
