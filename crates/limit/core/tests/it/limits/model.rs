//! Naive model: every allowed request, and the time at which it went on.

use anteroom_limit::time::{DurationUs, TimestampUs};

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// Time and cost of each request, in the order in which they were allowed.
    pub(crate) admitted: Vec<(TimestampUs, u32)>,
}

impl Model {
    pub(crate) fn admit(&mut self, at: TimestampUs, cost: u32) {
        self.admitted.push((at, cost));
    }

    /// Undoes the newest requests.
    pub(crate) fn refund(&mut self, back: u32) {
        let mut left = back;
        for (_, cost) in self.admitted.iter_mut().rev() {
            let undone = left.min(*cost);
            *cost -= undone;
            left -= undone;
        }
        self.admitted.retain(|(_, cost)| *cost > 0);
    }

    /// Returns the cost allowed in the window whose last instant is `last`.
    pub(crate) fn in_window_until(&self, last: TimestampUs, window: DurationUs) -> u64 {
        let is_inside = |at: TimestampUs| at <= last && last.since(at) < window;
        let inside = self.admitted.iter().filter(|(at, _)| is_inside(*at));
        inside.map(|(_, cost)| u64::from(*cost)).sum()
    }

    /// Returns the largest cost allowed in any window. The fullest window ends with a request.
    pub(crate) fn fullest(&self, window: DurationUs) -> u64 {
        let ends = self.admitted.iter().map(|(at, _)| *at);
        ends.map(|at| self.in_window_until(at, window))
            .max()
            .unwrap_or(0)
    }
}
