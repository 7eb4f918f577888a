//! Share of the capacity that waiting visitors got.
//!
//! It is measured by calendar minutes, because admissions are. Of each minute with a queue all the
//! time, the fuller of seats and admissions counts.

use anteroom_room::time::{DurationMs, Minute, Timestamp};

/// Time in which the queue forms; it is not measured.
const FIRST: DurationMs = DurationMs::from_secs(60);

/// Fill of the minutes in which visitors waited.
#[derive(Debug, Default)]
pub(super) struct Fill {
    first_queue_at: Option<Timestamp>,
    minute: Minute,
    seconds: u32,
    seconds_waited: u32,
    seats: f64,
    admissions: f64,
    minutes: u32,
    sum: f64,
}

impl Fill {
    /// Records that a visitor was queued.
    pub(super) fn note_queue(&mut self, now: Timestamp) {
        self.first_queue_at.get_or_insert(now);
    }

    /// Records the state at the end of a second.
    pub(super) fn note_second(
        &mut self,
        is_waited_for: bool,
        seats: f64,
        admissions: f64,
        now: Timestamp,
    ) {
        let minute = (now - DurationMs(1)).minute();
        if minute != self.minute {
            self.end_minute();
            self.minute = minute;
        }
        let is_counted = self.first_queue_at.is_some_and(|at| now.since(at) > FIRST);
        self.seconds += 1;
        self.seconds_waited += u32::from(is_waited_for && is_counted);
        self.seats += seats;
        self.admissions = admissions;
    }

    /// Returns the mean, if there was such a minute.
    pub(super) fn mean(mut self) -> Option<f64> {
        self.end_minute();
        (self.minutes > 0).then(|| self.sum / f64::from(self.minutes))
    }

    fn end_minute(&mut self) {
        if self.seconds == 60 && self.seconds_waited == 60 {
            let seats = self.seats / 60.0;
            self.sum += seats.max(self.admissions);
            self.minutes += 1;
        }
        self.seconds = 0;
        self.seconds_waited = 0;
        self.seats = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(waited: impl Fn(u64) -> bool, seats: f64, admissions: f64, expected: Option<f64>) {
        let mut fill = Fill::default();
        fill.note_queue(Timestamp(0));
        for second in 1..=240 {
            fill.note_second(waited(second), seats, admissions, Timestamp(second * 1_000));
        }
        let found = fill.mean();
        let is_near = match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
            (found, expected) => found.is_none() && expected.is_none(),
        };
        assert!(is_near, "{found:?} {expected:?}");
    }

    #[test]
    fn the_limit_that_binds_counts() {
        check(|_| true, 0.9, 0.5, Some(0.9));
        check(|_| true, 0.2, 1.0, Some(1.0));
    }

    #[test]
    fn minutes_with_an_empty_queue_do_not_count() {
        check(|second| second != 100 && second < 170, 0.9, 0.5, None);
        check(|_| false, 0.9, 0.5, None);
    }
}
