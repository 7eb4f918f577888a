//! What a waiting visitor is told, compared with what it was told before.
//!
//! Forecasts change a little with each snapshot. A page that follows each change flickers, and one
//! that gets worse without a word loses the visitor's trust. So a visitor keeps what it was told
//! until the truth differs by a tenth, and hears why it became worse. The ticket has it, so that
//! any node may go on.

use core::num::NonZeroU32;

use super::Room;
use crate::queue_position::{Rise, WaitRange};
use crate::ticket::{AfterArrival, Promise, Ticket, Told};
use crate::time::{DurationMs, Timestamp};
use crate::watermark::BUCKET;

/// Time after a second of arrival until all its visitors are counted: the page polls after a
/// second, and a report takes up to two and a half to reach the root and come back.
const COUNTED_AFTER: DurationMs = DurationMs(4_000);
/// Part of a wait or a position by which it may differ from what the visitor was told.
const SAME_PART: u32 = 10;
/// Difference of two times of admission that is none.
const SAME_TIME: DurationMs = DurationMs::from_secs(20);
/// Difference of two positions that is none.
const SAME_PEOPLE: u32 = 2;
/// Time for which a lowered limit is the reason of longer waits.
const LOWERED_FOR: DurationMs = DurationMs::from_secs(120);

/// Returns whether all visitors who arrived before this one are counted.
pub(super) fn is_counted(arrived_at: Timestamp, now: Timestamp) -> bool {
    now >= arrived_at + BUCKET + COUNTED_AFTER
}

impl Room {
    /// Returns what a visitor is told now who arrived at that time and was told this before.
    pub(super) fn announce(
        &self,
        (before, arrived_at): (Told, Timestamp),
        ahead: u32,
        wait: Option<DurationMs>,
        now: Timestamp,
    ) -> Told {
        let mut told = before;
        let position = NonZeroU32::MIN.saturating_add(ahead);
        match before.position {
            Some(known) if position > known => {
                let same = SAME_PEOPLE.max(known.get() / SAME_PART);
                if position.get() > known.get().saturating_add(same) {
                    told.position = Some(position);
                    told.rise = Some(Rise::EarlierVisitors);
                }
            }
            _ => told.position = Some(position),
        }
        told.admission = wait.and_then(|wait| AfterArrival::of(now + wait, arrived_at));
        let (Some(next), Some(known)) = (told.admission, before.admission) else {
            let now = AfterArrival::of(now, arrived_at);
            let first = now.zip(told.admission);
            told.first = first.map(|(told, admission)| Promise { told, admission });
            return told;
        };
        let (at, known_at) = (next.time(arrived_at), known.time(arrived_at));
        let same = DurationMs(at.since(now).0 / u64::from(SAME_PART)).max(SAME_TIME);
        if !self.giving_up.is_known() {
            // Another node may know more.
            told.admission = Some(known);
        } else if at > known_at + same {
            let has_moved_back = told.position > before.position;
            told.rise = Some(self.reason_of_rise(has_moved_back, now));
        } else if at + same < known_at {
            told.rise = None;
        } else {
            told.admission = Some(known);
        }
        told
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
        let Some(Promise { told, admission }) = ticket.told.first else {
            return;
        };
        let told_at = told.time(ticket.bucket);
        let range = WaitRange::around(admission.time(ticket.bucket).since(told_at));
        let took = now.since(told_at);
        let counts = &mut self.counters.announced;
        if took < range.low {
            counts.early += 1;
        } else if took > range.high {
            counts.late += 1;
        } else {
            counts.right += 1;
        }
    }
}
