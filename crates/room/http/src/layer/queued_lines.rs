//! Limit on the lines of queued requests in the access log.
//!
//! A large queue or an attack sends thousands of requests a second, with lines that look alike.
//! Above a rate they are left out and counted. All other requests always get their line.

use std::sync::OnceLock;
use std::time::Instant;

use parking_lot::Mutex;

/// Most lines of queued requests in a second, some 15 kB: enough to follow a queue, and no disk
/// fills up during a sale.
pub(super) const LINES_PER_SECOND: u32 = 100;

/// Limiter of lines, for all threads of a process.
#[derive(Debug, Default)]
pub(super) struct QueuedLines {
    /// Time of the first line.
    started_at: OnceLock<Instant>,
    window: Mutex<Window>,
}

/// Counts of lines in the present second. Seconds count from the first line.
#[derive(Debug, Default, Eq, PartialEq)]
struct Window {
    second: u64,
    written: u32,
    left_out: u64,
}

/// Whether a request gets a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Line {
    /// Written. `left_out` lines were left out since the last report.
    Written { left_out: u64 },
    /// Left out and counted.
    LeftOut,
}

impl Window {
    fn take(&mut self, second: u64) -> Line {
        let mut left_out = 0;
        // A late request of an earlier second counts for the present second.
        if second > self.second {
            left_out = std::mem::take(&mut self.left_out);
            (self.second, self.written) = (second, 0);
        }
        if self.written == LINES_PER_SECOND {
            self.left_out += 1;
            return Line::LeftOut;
        }
        self.written += 1;
        Line::Written { left_out }
    }
}

impl QueuedLines {
    /// Whether a request of time `at` gets a line. Logs the number of lines left out before.
    pub(super) fn may_write(&self, at: Instant) -> bool {
        let started_at = *self.started_at.get_or_init(|| at);
        let second = at.saturating_duration_since(started_at).as_secs();
        let line = self.window.lock().take(second);
        match line {
            Line::Written { left_out } => {
                report(left_out);
                true
            }
            Line::LeftOut => false,
        }
    }
}

impl Drop for QueuedLines {
    fn drop(&mut self) {
        report(self.window.get_mut().left_out);
    }
}

fn report(left_out: u64) {
    if left_out > 0 {
        tracing::info!(
            target: "access",
            left_out,
            "access log: lines of queued requests left out"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_per_second_are_bounded_and_the_rest_is_counted() {
        let mut window = Window::default();
        let requests = u64::from(LINES_PER_SECOND) + 40;
        let lines: Vec<_> = (0..requests).map(|_| window.take(7)).collect();
        let written = lines.iter().filter(|line| **line != Line::LeftOut);
        assert_eq!(written.count() as u64, u64::from(LINES_PER_SECOND));
        assert_eq!(window.take(8), Line::Written { left_out: 40 });
        assert_eq!(window.take(8), Line::Written { left_out: 0 });
    }

    #[test]
    fn a_late_request_starts_no_new_second() {
        let mut window = Window::default();
        for _ in 0..LINES_PER_SECOND {
            window.take(9);
        }
        assert_eq!(window.take(8), Line::LeftOut);
        assert_eq!(window.take(9), Line::LeftOut);
        assert_eq!(window.take(10), Line::Written { left_out: 2 });
    }
}
