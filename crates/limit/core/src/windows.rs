//! Whole windows with a counter each, from the Unix epoch on: the common part of
//! [`crate::fixed_window`] and [`crate::sliding_window`]. The first keeps one counter, the second
//! also the one before.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::counters::{self, Counters, Oldest};
use crate::rate::Rate;
use crate::settings::Settings;
use crate::time::TimestampUs;
use crate::verdict::Verdict;

/// Rate, counted in one or two counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Windows<const COUNTERS: usize> {
    rate: Rate,
}

/// State of one client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct State<const COUNTERS: usize> {
    /// Start of the window of the last counted request.
    pub starts_at: TimestampUs,
    /// Cost counted in it, and in the one before if that matters.
    pub counts: [u32; COUNTERS],
}

impl<const COUNTERS: usize> Windows<COUNTERS> {
    /// Weight of the oldest counter, and the number of counters before the newest.
    const OLDEST: (Oldest, u32) = match COUNTERS {
        1 => (Oldest::Whole, 0),
        2 => (Oldest::Falling, 1),
        _ => panic!("there are fixed windows and sliding ones"),
    };

    /// Creates windows for this rate.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate }
    }

    /// Returns the rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the counters for a store that can only add.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        let (oldest, older) = Self::OLDEST;
        Counters::new(self.rate.requests(), self.rate.window(), older, oldest)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings::default()
    }
}

impl<const COUNTERS: usize> Algorithm for Windows<COUNTERS> {
    type State = State<COUNTERS>;

    fn step(&self, state: &mut Self::State, now: TimestampUs, cost: Cost) -> Verdict {
        let counters = self.counters();
        counters.step(&mut state.starts_at, &mut state.counts, now, cost)
    }

    fn is_idle(&self, state: &Self::State, now: TimestampUs) -> bool {
        self.counters().is_idle(state.starts_at, &state.counts, now)
    }

    fn window_cost_max(&self, _cost_max: u32) -> u64 {
        self.counters().most_in_any_window()
    }
}

impl<const COUNTERS: usize> Default for State<COUNTERS> {
    fn default() -> Self {
        Self {
            starts_at: TimestampUs(0),
            counts: [0; COUNTERS],
        }
    }
}

impl<const COUNTERS: usize> State<COUNTERS> {
    pub(crate) fn write_numbers(&self, put: &mut dyn FnMut(u64)) {
        counters::write_numbers(self.starts_at, &self.counts, put);
    }

    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let (starts_at, counts) = counters::from_numbers(numbers, COUNTERS)?;
        let counts = counts.try_into().ok()?;
        Some(Self { starts_at, counts })
    }
}
