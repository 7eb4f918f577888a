//! Announcements to a waiting visitor, compared with those before.
//!
//! Forecasts change a little with each snapshot. A page that follows each change flickers, and one
//! that gets worse without a word loses the visitor's trust. So an announcement stands until the
//! truth differs by a tenth, and a worse one comes with its reason. The ticket has it, so that any
//! node may go on.

use core::num::NonZeroU32;

use super::Room;
use crate::figures::{CameTrue, FirstAnnouncement};
use crate::queue_position::Rise;
use crate::ticket::{AfterArrival, Announced, Promise, Ticket};
use crate::time::{DurationMs, Timestamp};
use crate::watermark::BUCKET;

/// Time after a second of arrival until all its visitors are counted: the page polls after a
/// second, and a report takes up to two and a half to reach the root and come back.
pub(super) const COUNTED_AFTER: DurationMs = DurationMs(4_000);
/// Part of a wait by which it may differ from what was announced.
const SAME_WAIT_PART: u64 = 10;
/// Part of a position by which it may be later than what was announced. A position must be right
/// to this part.
const SAME_POSITION_PART: u32 = 20;
/// Difference of two times of admission that is none.
const SAME_TIME: DurationMs = DurationMs::from_secs(20);
/// Difference of two positions that is none.
const SAME_PEOPLE: u32 = 2;
/// Time for which a lowered limit is the reason of longer waits.
const LOWERED_FOR: DurationMs = DurationMs::from_secs(120);

/// Whether all visitors who arrived before this one are counted.
pub(super) fn is_counted(arrived_at: Timestamp, now: Timestamp) -> bool {
    now >= arrived_at + BUCKET + COUNTED_AFTER
}

impl Room {
    /// Returns the announcement to a visitor who arrived at that time, after the one before.
    pub(super) fn announce(
        &self,
        (before, arrived_at): (Announced, Timestamp),
        ahead: u32,
        wait: Option<DurationMs>,
        now: Timestamp,
    ) -> Announced {
        let mut announced = before;
        let position = NonZeroU32::MIN.saturating_add(ahead);
        match before.position {
            Some(known) if position > known => {
                let same = SAME_PEOPLE.max(known.get() / SAME_POSITION_PART);
                if position.get() > known.get().saturating_add(same) {
                    announced.position = Some(position);
                    announced.rise = Some(Rise::EarlierVisitors);
                }
            }
            _ => announced.position = Some(position),
        }
        announced.admission = wait.and_then(|wait| AfterArrival::of(now + wait, arrived_at));
        let (Some(next), Some(known)) = (announced.admission, before.admission) else {
            let now = AfterArrival::of(now, arrived_at);
            let first = now.zip(announced.admission);
            announced.first = first.map(|(at, admission)| Promise { at, admission });
            return announced;
        };
        let (at, known_at) = (next.time(arrived_at), known.time(arrived_at));
        let same = DurationMs(at.since(now).0 / SAME_WAIT_PART).max(SAME_TIME);
        let has_moved_back = announced.position > before.position;
        if !self.habits.giving_up.is_settled(now) {
            // Another node may know more, and this one will soon.
            announced.admission = Some(known);
        } else if at > known_at + same {
            announced.rise = Some(self.reason_of_rise(has_moved_back, now));
        } else if at + same < known_at {
            // The position may have risen all the same.
            announced.rise = has_moved_back.then_some(Rise::EarlierVisitors);
        } else {
            announced.admission = Some(known);
        }
        announced
    }

    fn reason_of_rise(&self, has_moved_back: bool, now: Timestamp) -> Rise {
        let is_lowered = self
            .limits_lowered_at
            .is_some_and(|at| now.since(at) < LOWERED_FOR);
        if is_lowered {
            Rise::LimitLowered
        } else if has_moved_back {
            Rise::EarlierVisitors
        } else {
            Rise::Slower
        }
    }

    /// Counts how the first announcement to an admitted visitor came true.
    pub(super) fn note_announced(&mut self, ticket: &Ticket, now: Timestamp) {
        let Some(first) = FirstAnnouncement::of(&ticket.announced, ticket.bucket) else {
            return;
        };
        let came_true = first.came_true(now);
        let counts = &mut self.counters.promises;
        match came_true {
            CameTrue::Right => counts.right += 1,
            CameTrue::Early => counts.early += 1,
            CameTrue::Late => counts.late += 1,
        }
        self.figures.note_announced(came_true, now);
    }
}
