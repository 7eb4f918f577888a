//! How many went in during the last minute, as the page tells those who wait?
//!
//! From what each answer of the ledger says more than the one before, by the time at which it was
//! heard: all nodes' admissions, at most a sync old.

use anteroom_room::sync::Snapshot;
use anteroom_room::time::{DurationMs, Minute, Timestamp};

use super::RoomHandle;

/// Width of a slot of the history.
const SLOT: DurationMs = DurationMs(5_000);
/// Slots of a minute. The newest one is not over yet: rather a little less than a minute than more.
const SLOTS: usize = 12;
/// What has to be watched before anything is told.
const MINUTE: DurationMs = DurationMs(60_000);

/// Recent admissions by the time at which they were heard of.
#[derive(Debug, Default)]
pub(super) struct Movement {
    slots: [(u64, u32); SLOTS],
    known: Vec<(Minute, u32)>,
    since: Option<Timestamp>,
}

impl Movement {
    /// Takes note of what a ledger's answer says.
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
            // Whatever was before the first word went in before anybody looked.
            self.since = Some(now);
            return;
        }
        let number = now.0 / SLOT.0;
        let slot = &mut self.slots[usize::try_from(number % SLOTS as u64).unwrap_or(0)];
        if slot.0 != number {
            *slot = (number, 0);
        }
        slot.1 = slot.1.saturating_add(more);
    }

    /// How many went in; `None` before a minute has been watched.
    fn last_minute(&self, now: Timestamp) -> Option<u32> {
        if now.since(self.since?) < MINUTE {
            return None;
        }
        let oldest = (now.0 / SLOT.0).saturating_sub(SLOTS as u64 - 1);
        let recent = self.slots.iter().filter(|(number, _)| *number >= oldest);
        Some(recent.fold(0, |sum, (_, count)| sum.saturating_add(*count)))
    }
}

impl RoomHandle {
    /// How many went in during the last minute, as far as it is known here; `None` before a minute
    /// has been watched.
    #[must_use]
    pub fn admitted_last_minute(&self) -> Option<u32> {
        self.movement.lock().last_minute(self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_694_432_700_000);

    #[test]
    fn a_measure_needs_a_minute_and_forgets_older_samples() {
        let mut movement = Movement::default();
        let minute = START.minute();
        let at = |seconds: u64| START + DurationMs::from_secs(seconds);
        assert_eq!(movement.last_minute(at(0)), None);
        movement.note_admitted(&[(minute, 40)], at(1));
        movement.note_admitted(&[(minute, 47)], at(10));
        assert_eq!(
            movement.last_minute(at(60)),
            None,
            "not watched for so long"
        );
        assert_eq!(movement.last_minute(at(61)), Some(7), "40 were before");
        let next = at(60).minute();
        movement.note_admitted(&[(minute, 47), (next, 3)], at(62));
        assert_eq!(movement.last_minute(at(64)), Some(10));
        assert_eq!(movement.last_minute(at(70)), Some(3));
        assert_eq!(movement.last_minute(at(600)), Some(0));
    }

    #[test]
    fn an_older_word_is_no_admission() {
        let mut movement = Movement::default();
        let minute = START.minute();
        movement.note_admitted(&[(minute, 9)], START);
        movement.note_admitted(&[(minute, 5)], START + DurationMs(1_000));
        assert_eq!(movement.last_minute(START + MINUTE), Some(0));
    }
}
