//! Admissions of the last minute at all nodes, for the waiting page.
//!
//! They are the differences between the ledger's replies, by the time of their receipt: at most a
//! sync old.

use anteroom_room::sync::Snapshot;
use anteroom_room::time::{DurationMs, Minute, Timestamp};

use super::RoomHandle;

/// Width of a time slice.
const SLICE: DurationMs = DurationMs(5_000);
/// Slices of a minute. The newest one is not complete, so the sum covers slightly less than a
/// minute.
const SLICES: usize = 12;
/// Time of observation before there is a result.
const MINUTE: DurationMs = DurationMs(60_000);

/// Recent admissions, by the time of the reply that had them.
#[derive(Debug, Default)]
pub(super) struct RecentAdmissions {
    slices: [(u64, u32); SLICES],
    known: Vec<(Minute, u32)>,
    since: Option<Timestamp>,
}

impl RecentAdmissions {
    /// Records the admissions in a ledger's reply.
    pub(super) fn note(&mut self, snapshot: &Snapshot, now: Timestamp) {
        self.note_admitted(&snapshot.admitted, now);
    }

    fn note_admitted(&mut self, admitted: &[(Minute, u32)], now: Timestamp) {
        let known = |minute| {
            let found = self.known.iter().find(|(each, _)| *each == minute);
            found.map_or(0, |(_, count)| *count)
        };
        let more = admitted
            .iter()
            .map(|(minute, count)| count.saturating_sub(known(*minute)));
        let more = more.fold(0, u32::saturating_add);
        self.known = admitted.to_vec();
        if self.since.is_none() {
            // The first reply has admissions from before the start of the observation.
            self.since = Some(now);
            return;
        }
        let number = now.0 / SLICE.0;
        let slice = &mut self.slices[usize::try_from(number % SLICES as u64).unwrap_or(0)];
        if slice.0 != number {
            *slice = (number, 0);
        }
        slice.1 = slice.1.saturating_add(more);
    }

    /// Returns the admissions of the last minute; `None` before a minute was observed.
    fn last_minute(&self, now: Timestamp) -> Option<u32> {
        if now.since(self.since?) < MINUTE {
            return None;
        }
        let oldest = (now.0 / SLICE.0).saturating_sub(SLICES as u64 - 1);
        let recent = self.slices.iter().filter(|(number, _)| *number >= oldest);
        Some(recent.fold(0, |sum, (_, count)| sum.saturating_add(*count)))
    }
}

impl RoomHandle {
    /// Returns the admissions of the last minute, as far as this node knows; `None` before a minute
    /// was observed.
    #[must_use]
    pub fn admitted_last_minute(&self) -> Option<u32> {
        self.recent_admissions.lock().last_minute(self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_694_432_700_000);

    #[test]
    fn a_result_needs_a_minute_and_forgets_older_admissions() {
        let mut recent = RecentAdmissions::default();
        let minute = START.minute();
        let at = |seconds: u64| START + DurationMs::from_secs(seconds);
        assert_eq!(recent.last_minute(at(0)), None);
        recent.note_admitted(&[(minute, 40)], at(1));
        recent.note_admitted(&[(minute, 47)], at(10));
        assert_eq!(
            recent.last_minute(at(60)),
            None,
            "observed for less than a minute"
        );
        assert_eq!(recent.last_minute(at(61)), Some(7), "40 were before");
        let next = at(60).minute();
        recent.note_admitted(&[(minute, 47), (next, 3)], at(62));
        assert_eq!(recent.last_minute(at(64)), Some(10));
        assert_eq!(recent.last_minute(at(70)), Some(3));
        assert_eq!(recent.last_minute(at(600)), Some(0));
    }

    #[test]
    fn an_older_reply_adds_no_admission() {
        let mut recent = RecentAdmissions::default();
        let minute = START.minute();
        recent.note_admitted(&[(minute, 9)], START);
        recent.note_admitted(&[(minute, 5)], START + DurationMs(1_000));
        assert_eq!(recent.last_minute(START + MINUTE), Some(0));
    }
}
