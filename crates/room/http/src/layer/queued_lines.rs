//! Which queued requests get a line in the access log?
//!
//! A crowd that waits, or an attack, sends thousands of requests a second, and their lines say the
//! same. Above a rate they are left out and counted. Requests that pass, and refusals, always get
//! their line.

use std::sync::OnceLock;
use std::time::Instant;

use parking_lot::Mutex;

/// Lines of queued requests that a process writes in a second. Some 15 kB a second: a crowd can be
/// followed, and no disk fills up during a sale.
pub(super) const LINES_PER_SECOND: u32 = 100;

/// Decides about lines, for all threads of a process.
#[derive(Debug, Default)]
pub(super) struct QueuedLines {
    /// When the first of them came.
    started_at: OnceLock<Instant>,
    window: Mutex<Window>,
}

/// What was written and left out lately. Seconds are counted from the start.
#[derive(Debug, Default, Eq, PartialEq)]
struct Window {
    second: u64,
    written: u32,
    left_out: u64,
}

/// Whether a request gets a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Line {
    /// It does. So many others were left out since that was said last.
    Written { left_out: u64 },
    /// It does not.
    LeftOut,
}

impl Window {
    fn take(&mut self, second: u64) -> Line {
        let mut left_out = 0;
        // A request that began earlier, and is seen later, belongs to the present second.
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
    /// Whether a request that came at `at` gets a line. Writes down how many got none before it.
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
    fn the_log_is_bounded_per_second_and_says_what_it_dropped() {
        let mut window = Window::default();
        let requests = u64::from(LINES_PER_SECOND) + 40;
        let lines: Vec<_> = (0..requests).map(|_| window.take(7)).collect();
        let written = lines.iter().filter(|line| **line != Line::LeftOut);
        assert_eq!(written.count() as u64, u64::from(LINES_PER_SECOND));
        assert_eq!(window.take(8), Line::Written { left_out: 40 });
        assert_eq!(window.take(8), Line::Written { left_out: 0 });
    }

    #[test]
    fn a_request_of_an_earlier_second_opens_no_new_one() {
        let mut window = Window::default();
        for _ in 0..LINES_PER_SECOND {
            window.take(9);
        }
        assert_eq!(window.take(8), Line::LeftOut);
        assert_eq!(window.take(9), Line::LeftOut);
        assert_eq!(window.take(10), Line::Written { left_out: 2 });
    }
}
