//! How are the counters of a window's parts kept for one client? Shared by both kinds of
//! sub-windows.

use alloc::boxed::Box;
use alloc::vec;

use crate::cost::Cost;
use crate::counters::Counters;
use crate::time::{MicroSpan, Micros};
use crate::verdict::Verdict;

/// What is remembered of one client: a counter for each part of the window and one more.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct State {
    /// Where the newest counter begins.
    starts_at: Micros,
    /// Newest first: moving 121 counters costs less than knowing at each sum where they begin.
    /// Empty before the first call.
    counts: Box<[u32]>,
}

impl State {
    /// A state of these parts, as a store wrote them down.
    #[must_use]
    pub fn from_counts(starts_at: Micros, counts: Box<[u32]>) -> Self {
        Self { starts_at, counts }
    }

    /// Where the newest counter begins.
    #[must_use]
    pub fn starts_at(&self) -> Micros {
        self.starts_at
    }

    /// The counters, newest first.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    pub(crate) fn step(&mut self, counters: &Counters, now: Micros, cost: Cost) -> Verdict {
        if self.counts.len() == counters.count() {
            return counters.step(&mut self.starts_at, &mut self.counts, now, cost);
        }
        let mut fitting = self.fitting(counters);
        let verdict = counters.step(&mut fitting.starts_at, &mut fitting.counts, now, cost);
        if verdict.is_admitted() && cost != Cost::Peek {
            let is_empty = fitting.counts.iter().all(|&count| count == 0);
            *self = if is_empty { Self::default() } else { fitting };
        }
        verdict
    }

    pub(crate) fn is_idle(&self, counters: &Counters, now: Micros) -> bool {
        if self.counts.len() == counters.count() {
            return counters.is_idle(self.starts_at, &self.counts, now);
        }
        let fitting = self.fitting(counters);
        counters.is_idle(fitting.starts_at, &fitting.counts, now)
    }

    /// The state in as many counters as there are now. If there were others before, all that was
    /// counted is put where the newest of it can be: what was spent is forgotten later, and not
    /// earlier, than it would have been.
    fn fitting(&self, counters: &Counters) -> Self {
        let mut counts = vec![0; counters.count()].into_boxed_slice();
        let mut starts_at = Micros(0);
        if let Some(parts) = self.counts.len().checked_sub(1) {
            let window = counters
                .width()
                .0
                .saturating_mul(counters.count() as u64 - 1);
            let width = window / (parts as u64).max(1);
            let last = self.starts_at + MicroSpan(width.saturating_sub(1));
            starts_at = Micros(last.0 - last.0 % counters.width().0);
            counts[0] = self
                .counts
                .iter()
                .fold(0, |sum: u32, &count| sum.saturating_add(count));
        }
        Self { starts_at, counts }
    }
}
