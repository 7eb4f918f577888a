//! Figures of each minute of a room at one node, for its history. They decide nothing.
//!
//! # Figures that several nodes know in part
//!
//! Nobody says that it stops waiting, or that it leaves the site. The end of a count and the end of
//! a seat show it, and another node may have moved either. So each node counts the ends that it
//! sets, and subtracts those that it finds and moves. Only the sum over all nodes is right, and a
//! count of one node may be negative. A node that crashes takes what it had counted with it.

use alloc::vec::Vec;

use crate::histogram::{BUCKETS, Histogram, bucket_of};
use crate::queue_position::WaitRange;
use crate::ticket::{Announced, Promise};
use crate::time::{DurationMs, Minute, Timestamp};
use crate::waiting::COUNTED_MAX;

/// Most finished minutes that wait for [`Figures::take_finished`]; the oldest one is dropped. A
/// node takes them once a minute.
const FINISHED_MAX: usize = 4;
/// Ends of seats for which there is memory from the start: those of one session.
const ENDS: usize = 64;
/// Minutes with ends of counts: this one, and those up to [`COUNTED_MAX`] later.
const LEAVING_MINUTES: usize = 4;

const _: () = assert!(
    COUNTED_MAX.0 < 60_000 * (LEAVING_MINUTES as u64 - 2),
    "a count ends in one of these minutes"
);

/// Figures of one minute at one node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MinuteFigures {
    /// Minute of the figures, by room time. The slot of each admission was leased for it.
    pub minute: Minute,
    /// Visitors who came without a ticket: admitted, queued or rejected.
    pub arrivals: u64,
    /// Visitors admitted under the limits.
    pub admitted: u64,
    /// Visitors admitted outside the limits.
    pub admitted_outside_limits: u64,
    /// Responses that rejected a visitor, because the room has no queue.
    pub rejected: u64,
    /// Sessions that the origin ended.
    pub revoked: u64,
    /// First announced waits, by how they came true.
    pub announced: AnnouncedWaits,
    /// Times waited by admitted visitors who waited: from arrival to admission.
    pub waits: Histogram,
    /// Times inside: from admission to the end of the seat.
    pub inside: Histogram,
    /// Inversions: how much later an admitted visitor arrived than another who still waited.
    pub inversions: Histogram,
}

/// Visitors who stopped waiting, by how the first announced wait came true. Counts of those who
/// left may be negative at one node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AnnouncedWaits {
    /// Admissions within the announced range.
    pub right: u64,
    /// Earlier admissions.
    pub early: u64,
    /// Later admissions.
    pub late: u64,
    /// Visitors who left before the range had passed.
    pub left_before: i64,
    /// Visitors who left after the range had passed.
    pub left_after: i64,
    /// Visitors who left and had no announced wait.
    pub left_unannounced: i64,
}

/// Result of an announced wait for an admitted visitor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CameTrue {
    Right,
    Early,
    Late,
}

/// First announcement to a waiting visitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstAnnouncement {
    announced_at: Timestamp,
    range: WaitRange,
}

impl FirstAnnouncement {
    /// Returns the announcement to a visitor who arrived at that time; `None` if there was none.
    pub(crate) fn of(announced: &Announced, arrived_at: Timestamp) -> Option<Self> {
        let Promise { at, admission } = announced.first?;
        let announced_at = at.time(arrived_at);
        Some(Self {
            announced_at,
            range: WaitRange::around(admission.time(arrived_at).since(announced_at)),
        })
    }

    /// Returns how it came true for a visitor admitted at that time.
    pub(crate) fn came_true(&self, admitted_at: Timestamp) -> CameTrue {
        let took = admitted_at.since(self.announced_at);
        if took < self.range.low {
            CameTrue::Early
        } else if took > self.range.high {
            CameTrue::Late
        } else {
            CameTrue::Right
        }
    }
}

/// Visitor who waits, as far as its leaving is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitEnd {
    /// Time at which it is overdue.
    pub(crate) at: Timestamp,
    /// Announcement that it had.
    pub(crate) announced: Option<FirstAnnouncement>,
}

impl WaitEnd {
    fn class(&self) -> usize {
        match &self.announced {
            None => 2,
            Some(first) => usize::from(first.came_true(self.at) == CameTrue::Late),
        }
    }
}

/// Collector of a room's figures.
#[derive(Debug)]
pub(crate) struct Figures {
    current: MinuteFigures,
    finished: Vec<MinuteFigures>,
    /// Ends of counts by minute and class: before the range had passed, after it, without one.
    leaving: [[i64; 3]; LEAVING_MINUTES],
    /// Ends of seats in their order, and how long their visitors were inside by then.
    sessions: Vec<(Timestamp, [i32; BUCKETS])>,
}

impl Figures {
    /// Makes a collector that begins at `now`.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            current: MinuteFigures {
                minute: now.minute(),
                ..MinuteFigures::default()
            },
            finished: Vec::with_capacity(FINISHED_MAX),
            leaving: [[0; 3]; LEAVING_MINUTES],
            sessions: Vec::with_capacity(ENDS),
        }
    }

    /// Returns the figures of the present minute, to add to them.
    pub(crate) fn at(&mut self, now: Timestamp) -> &mut MinuteFigures {
        if now.minute() > self.current.minute {
            self.turn_to(now.minute());
        }
        &mut self.current
    }

    /// Removes and returns the figures of finished minutes, oldest first.
    pub(crate) fn take_finished(&mut self, now: Timestamp) -> Vec<MinuteFigures> {
        self.at(now);
        let taken = self.finished.clone();
        self.finished.clear();
        taken
    }

    /// Counts an admission: of a new visitor, or after a wait of this length.
    pub(crate) fn note_admission(&mut self, waited: Option<DurationMs>, now: Timestamp) {
        let figures = self.at(now);
        match waited {
            Some(waited) => figures.waits.note(waited),
            None => figures.arrivals += 1,
        }
    }

    /// Counts how the announcement to an admitted visitor came true.
    pub(crate) fn note_announced(&mut self, came_true: CameTrue, now: Timestamp) {
        let announced = &mut self.at(now).announced;
        match came_true {
            CameTrue::Right => announced.right += 1,
            CameTrue::Early => announced.early += 1,
            CameTrue::Late => announced.late += 1,
        }
    }

    /// Moves the time at which a visitor counts as gone: from `before`, if it waited before, to
    /// `after`, if it waits on.
    pub(crate) fn move_wait(
        &mut self,
        before: Option<WaitEnd>,
        after: Option<WaitEnd>,
        now: Timestamp,
    ) {
        self.at(now);
        for (end, by) in [(before, -1), (after, 1)] {
            let Some(end) = end else { continue };
            // One that came back late has been counted, and a wrong clock may write any time.
            let at = end.at.max(now).min(now + COUNTED_MAX).minute();
            let slot = usize::try_from(at.0 % LEAVING_MINUTES as u64).unwrap_or(0);
            self.leaving[slot][end.class()] += by;
        }
    }

    /// Moves the end of a session that began at `accepted_at`: from `before`, if there was a seat,
    /// to `after`.
    pub(crate) fn move_session(
        &mut self,
        accepted_at: Timestamp,
        before: Option<Timestamp>,
        after: Timestamp,
        now: Timestamp,
    ) {
        self.at(now);
        for (end, by) in [(before, -1), (Some(after), 1)] {
            let Some(end) = end else { continue };
            let bucket = bucket_of(end.since(accepted_at));
            let at = self.sessions.partition_point(|(known, _)| *known < end);
            if self.sessions.get(at).is_none_or(|(known, _)| *known != end) {
                self.sessions.insert(at, (end, [0; BUCKETS]));
            }
            self.sessions[at].1[bucket] += by;
        }
    }

    /// Finishes the present minute.
    fn turn_to(&mut self, minute: Minute) {
        let ended = &mut self.current;
        let last = ended.minute.0.min(minute.0 - 1);
        // All minutes before the next one; there are no ends in those that nobody asked for.
        let passed = (minute.0 - last).min(LEAVING_MINUTES as u64);
        for at in last..last + passed {
            let slot = usize::try_from(at % LEAVING_MINUTES as u64).unwrap_or(0);
            let [before, after, unannounced] = core::mem::take(&mut self.leaving[slot]);
            ended.announced.left_before += before;
            ended.announced.left_after += after;
            ended.announced.left_unannounced += unannounced;
        }
        let over = self
            .sessions
            .partition_point(|(end, _)| end.minute() < minute);
        for (_, counts) in self.sessions.drain(..over) {
            for (bucket, count) in counts.into_iter().enumerate() {
                ended.inside.change(bucket, count.into());
            }
        }
        if self.finished.len() == FINISHED_MAX {
            self.finished.remove(0);
        }
        self.finished.push(self.current);
        self.current = MinuteFigures {
            minute,
            ..MinuteFigures::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::*;
    use crate::ticket::AfterArrival;

    /// First millisecond of a minute.
    const START: Timestamp = Timestamp(1_694_432_700_000);

    fn at(seconds: u64) -> Timestamp {
        START + DurationMs::from_secs(seconds)
    }

    fn finished(figures: &mut Figures, seconds: u64) -> MinuteFigures {
        let taken = figures.take_finished(at(seconds));
        assert_eq!(taken.len(), 1, "{taken:?}");
        taken[0]
    }

    /// Visitor who is overdue at that time, after an announcement of 100 s when it came.
    fn announced(seconds: u64) -> Option<WaitEnd> {
        let after = |secs| AfterArrival(NonZeroU32::new(secs).unwrap());
        let announced = Announced {
            first: Some(Promise {
                at: after(1),
                admission: after(101),
            }),
            ..Announced::default()
        };
        Some(WaitEnd {
            at: at(seconds),
            announced: FirstAnnouncement::of(&announced, START),
        })
    }

    fn unannounced(seconds: u64) -> Option<WaitEnd> {
        Some(WaitEnd {
            at: at(seconds),
            announced: None,
        })
    }

    fn left(figures: &MinuteFigures) -> [i64; 3] {
        let announced = figures.announced;
        let AnnouncedWaits {
            left_before,
            left_after,
            left_unannounced,
            ..
        } = announced;
        [left_before, left_after, left_unannounced]
    }

    #[test]
    fn an_event_counts_in_its_minute_whenever_that_is_taken() {
        let mut figures = Figures::new(START);
        figures.note_admission(None, at(59));
        figures.note_admission(Some(DurationMs::from_secs(50)), at(60));
        let first = finished(&mut figures, 100);
        assert_eq!((first.minute, first.arrivals), (START.minute(), 1));
        assert_eq!(first.waits.total(), 0);
        let second = finished(&mut figures, 120);
        assert_eq!((second.arrivals, second.waits.total()), (0, 1));
        assert_eq!(figures.take_finished(at(121)), []);
    }

    #[test]
    fn a_visitor_who_refreshes_has_not_left() {
        let mut figures = Figures::new(START);
        figures.move_wait(None, unannounced(20), at(10));
        figures.move_wait(unannounced(20), unannounced(80), at(19));
        assert_eq!(left(&finished(&mut figures, 60)), [0; 3]);
        figures.move_wait(unannounced(80), None, at(79));
        assert_eq!(left(&finished(&mut figures, 120)), [0; 3]);
    }

    #[test]
    fn one_who_leaves_counts_when_it_is_overdue_and_by_its_announcement() {
        let mut figures = Figures::new(START);
        figures.move_wait(None, unannounced(20), at(10));
        // The range of 100 s ends after 150 s, and it was announced at 1 s.
        figures.move_wait(None, announced(61), at(10));
        assert_eq!(left(&finished(&mut figures, 60)), [0, 0, 1]);
        assert_eq!(left(&finished(&mut figures, 120)), [1, 0, 0]);
        figures.move_wait(None, announced(151), at(140));
        figures.move_wait(None, announced(152), at(140));
        assert_eq!(left(&finished(&mut figures, 180)), [1, 1, 0]);
    }

    #[test]
    fn one_who_comes_back_late_is_subtracted_again() {
        let mut figures = Figures::new(START);
        figures.move_wait(None, unannounced(20), at(10));
        assert_eq!(left(&finished(&mut figures, 60)), [0, 0, 1]);
        figures.move_wait(unannounced(20), unannounced(200), at(130));
        let taken = figures.take_finished(at(180));
        let sums = taken.iter().map(left);
        let sum = sums.fold([0; 3], |sum, left| [0, 1, 2].map(|at| sum[at] + left[at]));
        assert_eq!(sum, [0, 0, -1]);
        assert_eq!(left(&finished(&mut figures, 240)), [0, 0, 1]);
    }

    #[test]
    fn a_session_counts_when_it_ends_and_as_long_as_it_was() {
        let mut figures = Figures::new(START);
        figures.move_session(START, None, at(30), at(0));
        figures.move_session(START, Some(at(30)), at(90), at(20));
        assert_eq!(finished(&mut figures, 60).inside.total(), 0);
        let inside = finished(&mut figures, 120).inside;
        assert_eq!(inside.total(), 1);
        assert_eq!(inside.counts()[bucket_of(DurationMs(90_000))], 1);
    }

    #[test]
    fn a_collector_that_nobody_asks_keeps_the_newest_minutes() {
        let mut figures = Figures::new(START);
        for minute in 0..10 {
            figures.note_admission(None, at(60 * minute));
        }
        let taken = figures.take_finished(at(600));
        let minutes = taken.iter().map(|taken| taken.minute.0 - START.minute().0);
        assert!(minutes.eq(6..10));
    }
}
