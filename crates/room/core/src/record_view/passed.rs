//! Windows of time that have passed since replies arrived.
//!
//! A reply shows a record at some time. What the record had counted before that is at least as old
//! as the reply. A child knows how long ago a reply arrived by its own clock, which is never
//! stepped. So it may tell the ledger what is out of a window
//! ([`crate::ledger::RecentAdmissions`]).

use alloc::collections::VecDeque;

use crate::id::Incarnation;
use crate::store::Identity;
use crate::sync::{PassedWindows, SyncRequest};
use crate::time::{DurationMs, Timestamp};

/// Parts of 1000 by which a window is waited for longer, because clocks do not run alike: four
/// times the drift between two, slewing included.
const DRIFT_PER_MILLE: u64 = 2;

/// Replies of one record of one server, with the times at which they arrived.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ReplyTimes {
    of: Option<(Incarnation, Identity)>,
    second: Marks<1_000, 60>,
    minute: Marks<60_000, 500>,
}

/// Replies that are at least `SPACING` apart, as far as a window of `LENGTH` needs them, both in
/// milliseconds: the record time of each, and when it arrived.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Marks<const LENGTH: u64, const SPACING: u64>(VecDeque<(Timestamp, Timestamp)>);

impl ReplyTimes {
    /// Notes at `now` that this record has shown this time. A record that another server brought
    /// back may have forgotten what an earlier reply showed.
    pub(super) fn note(
        &mut self,
        of: (Incarnation, Identity),
        record_time: Timestamp,
        now: Timestamp,
    ) {
        if self.of != Some(of) {
            *self = Self {
                of: Some(of),
                ..Self::default()
            };
        }
        self.second.note(record_time, now);
        self.minute.note(record_time, now);
    }

    /// Returns what has passed by `now` for the record and the server that a request names.
    pub(super) fn passed(&self, request: &SyncRequest, now: Timestamp) -> PassedWindows {
        let named = request.parent.zip(request.stamp.store);
        if named.is_none() || named != self.of {
            return PassedWindows::default();
        }
        PassedWindows {
            second: self.second.passed(now),
            minute: self.minute.passed(now),
        }
    }
}

impl<const LENGTH: u64, const SPACING: u64> Marks<LENGTH, SPACING> {
    fn note(&mut self, record_time: Timestamp, now: Timestamp) {
        while self
            .0
            .get(1)
            .is_some_and(|(_, at)| is_past::<LENGTH>(*at, now))
        {
            self.0.pop_front();
        }
        let is_next = |(shown, at): &(Timestamp, Timestamp)| {
            record_time > *shown && now.since(*at) >= DurationMs(SPACING)
        };
        if self.0.back().is_none_or(is_next) {
            self.0.push_back((record_time, now));
        }
    }

    /// Returns the newest record time that was shown longer ago than the window.
    fn passed(&self, now: Timestamp) -> Option<Timestamp> {
        let newest_first = self.0.iter().rev();
        let mut past = newest_first.filter(|(_, at)| is_past::<LENGTH>(*at, now));
        past.next().map(|(shown, _)| *shown)
    }
}

fn is_past<const LENGTH: u64>(at: Timestamp, now: Timestamp) -> bool {
    now.since(at) >= DurationMs(LENGTH + LENGTH * DRIFT_PER_MILLE / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::tests::request;

    const RECORD: (Incarnation, Identity) = (Incarnation(3), Identity(5));

    fn passed(times: &ReplyTimes, now: u64) -> (Option<u64>, Option<u64>) {
        let mut sent = request(1, 1, 0);
        sent.parent = Some(RECORD.0);
        sent.stamp.store = Some(RECORD.1);
        let passed = times.passed(&sent, Timestamp(now));
        (passed.second.map(|at| at.0), passed.minute.map(|at| at.0))
    }

    #[test]
    fn a_window_has_passed_a_little_after_its_length_since_a_reply() {
        let mut times = ReplyTimes::default();
        times.note(RECORD, Timestamp(70), Timestamp(1_000));
        times.note(RECORD, Timestamp(900), Timestamp(1_250));
        assert_eq!(passed(&times, 2_001), (None, None));
        assert_eq!(passed(&times, 2_002), (Some(70), None));
        assert_eq!(passed(&times, 2_252), (Some(900), None));
        assert_eq!(passed(&times, 61_119), (Some(900), None));
        assert_eq!(passed(&times, 61_120), (Some(900), Some(70)));
    }

    #[test]
    fn a_record_of_another_server_shows_nothing_about_this_one() {
        let mut times = ReplyTimes::default();
        times.note(RECORD, Timestamp(70), Timestamp(1_000));
        for other in [(RECORD.0, Identity(6)), (Incarnation(4), RECORD.1)] {
            let mut later = times.clone();
            later.note(other, Timestamp(80), Timestamp(1_001));
            assert_eq!(passed(&later, 9_000), (None, None));
        }
        assert_eq!(passed(&times, 9_000), (Some(70), None));
    }

    #[test]
    fn few_replies_are_remembered_however_many_come() {
        let mut times = ReplyTimes::default();
        for ms in 0..200_000 {
            times.note(RECORD, Timestamp(ms), Timestamp(1_000 + ms));
            let counts = (times.second.0.len(), times.minute.0.len());
            assert!(counts.0 <= 19 && counts.1 <= 123, "{counts:?}");
        }
        let (second, minute) = passed(&times, 200_999);
        let late = |at: Option<u64>, length: u64| 199_999 - length - at.unwrap();
        assert!(late(second, 1_002) <= 60, "{second:?}");
        assert!(late(minute, 60_120) <= 500, "{minute:?}");
    }
}
