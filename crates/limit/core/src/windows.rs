//! Whole windows with a counter each, from the Unix epoch on: what [`crate::fixed_window`] and
//! [`crate::sliding_window`] have in common. The first keeps one counter, the second the one before
//! as well.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::counters::{self, Counters, Oldest};
use crate::rate::Rate;
use crate::settings::Settings;
use crate::time::TimestampUs;
use crate::verdict::Verdict;

/// A rate, counted in so many counters: one or two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Windows<const COUNTERS: usize> {
    rate: Rate,
}

/// What is remembered of one client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct State<const COUNTERS: usize> {
    /// Where the window of the last charge begins.
    pub starts_at: TimestampUs,
    /// What was charged in it, and in the one before if that counts.
    pub counts: [u32; COUNTERS],
}

impl<const COUNTERS: usize> Windows<COUNTERS> {
    /// How the oldest counter counts, and how many there are before the newest.
    const OLDEST: (Oldest, u32) = match COUNTERS {
        1 => (Oldest::Whole, 0),
        2 => (Oldest::Falling, 1),
        _ => panic!("there are fixed windows and sliding ones"),
    };

    /// Windows for this rate.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate }
    }

    /// How many calls in how long.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The counters of a store that can only add.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        let (oldest, older) = Self::OLDEST;
        Counters::new(self.rate.calls(), self.rate.window(), older, oldest)
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

    fn most_in_any_window(&self, _cost_max: u32) -> u64 {
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
