//! The naive model: every call that was admitted, and when it went on.

use anteroom_limit::time::{DurationUs, TimestampUs};

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// When, and how much it counted; in the order in which they were admitted.
    pub(crate) admitted: Vec<(TimestampUs, u32)>,
}

impl Model {
    pub(crate) fn admit(&mut self, at: TimestampUs, cost: u32) {
        self.admitted.push((at, cost));
    }

    /// Undoes the newest.
    pub(crate) fn refund(&mut self, back: u32) {
        let mut left = back;
        for (_, cost) in self.admitted.iter_mut().rev() {
            let undone = left.min(*cost);
            *cost -= undone;
            left -= undone;
        }
        self.admitted.retain(|(_, cost)| *cost > 0);
    }

    /// What was admitted in the window whose last instant is `last`.
    pub(crate) fn in_window_until(&self, last: TimestampUs, window: DurationUs) -> u64 {
        let is_inside = |at: TimestampUs| at <= last && last.since(at) < window;
        let inside = self.admitted.iter().filter(|(at, _)| is_inside(*at));
        inside.map(|(_, cost)| u64::from(*cost)).sum()
    }

    /// The most that was admitted in any window. The fullest ends with a call.
    pub(crate) fn fullest(&self, window: DurationUs) -> u64 {
        let ends = self.admitted.iter().map(|(at, _)| *at);
        ends.map(|at| self.in_window_until(at, window))
            .max()
            .unwrap_or(0)
    }
}
