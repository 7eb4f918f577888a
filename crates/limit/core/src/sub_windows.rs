//! Sub-windows: a sliding window with a counter for each part of the window.
//!
//! Only the part that leaves the window is an estimate. With more parts a wrong estimate lasts
//! shorter, but the bound stays the same: a client that puts all its requests at the end of a part
//! gets nearly twice the limit. Source: Muscat, "Distributed Rate-Limiting Algorithms", 2022.
//!
//! # Strict sub-windows
//!
//! In strict sub-windows, the part that leaves the window counts in full until it has left. So no
//! window ever has more than the limit, from counters alone. The price: a client waits for up to
//! one part too long.

use alloc::boxed::Box;
use alloc::vec;

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::counters::{self, Counters, Oldest};
use crate::rate::Rate;
use crate::settings::{Settings, SettingsError};
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::Verdict;

/// Largest number of parts: half seconds of a minute. Each costs a counter, or a read from a store.
pub const PARTS_MOST: u32 = 120;

/// Rate, the parts of its window, and the weight of the oldest of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SubWindows {
    rate: Rate,
    parts: u32,
    oldest: Oldest,
}

impl SubWindows {
    /// Creates a window of `parts` parts, of which the oldest has a falling weight.
    ///
    /// # Errors
    ///
    /// [`SettingsError::PartsOutOfRange`] for zero and for more than [`PARTS_MOST`],
    /// [`SettingsError::PartsUneven`] if the parts would not be whole microseconds.
    pub const fn new(rate: Rate, parts: u32) -> Result<Self, SettingsError> {
        Self::with_oldest(rate, parts, Oldest::Falling)
    }

    /// Creates a window of `parts` parts, of which the oldest counts in full until it has left.
    ///
    /// # Errors
    ///
    /// Those of [`Self::new`].
    pub const fn strict(rate: Rate, parts: u32) -> Result<Self, SettingsError> {
        Self::with_oldest(rate, parts, Oldest::Whole)
    }

    const fn with_oldest(rate: Rate, parts: u32, oldest: Oldest) -> Result<Self, SettingsError> {
        if parts == 0 || parts > PARTS_MOST {
            let most = PARTS_MOST;
            return Err(SettingsError::PartsOutOfRange { parts, most });
        }
        let window = rate.window();
        if !window.0.is_multiple_of(parts as u64) {
            return Err(SettingsError::PartsUneven { window, parts });
        }
        Ok(Self {
            rate,
            parts,
            oldest,
        })
    }

    /// Returns the rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns how many parts the window has.
    #[must_use]
    pub const fn parts(&self) -> u32 {
        self.parts
    }

    /// Returns the weight of the oldest part.
    #[must_use]
    pub const fn oldest(&self) -> Oldest {
        self.oldest
    }

    /// Returns the counters for a store that can only add.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        let width = DurationUs(self.rate.window().0 / self.parts as u64);
        Counters::new(self.rate.requests(), width, self.parts, self.oldest)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            sub_windows: Some(self.parts),
            ..Settings::default()
        }
    }
}

impl Algorithm for SubWindows {
    type State = State;

    fn step(&self, state: &mut State, now: TimestampUs, cost: Cost) -> Verdict {
        state.step(&self.counters(), now, cost)
    }

    fn is_idle(&self, state: &State, now: TimestampUs) -> bool {
        state.is_idle(&self.counters(), now)
    }

    fn window_cost_max(&self, _cost_max: u32) -> u64 {
        self.counters().most_in_any_window()
    }
}

/// State of one client: a counter for each part of the window and one more.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct State {
    /// Start of the newest counter.
    starts_at: TimestampUs,
    /// Counts, newest first: moving 121 counters costs less than computing where each begins. Empty
    /// before the first request.
    counts: Box<[u32]>,
}

impl State {
    /// Creates a state from counts, as a store wrote them.
    #[must_use]
    pub fn from_counts(starts_at: TimestampUs, counts: Box<[u32]>) -> Self {
        Self { starts_at, counts }
    }

    /// Returns the start of the newest counter.
    #[must_use]
    pub fn starts_at(&self) -> TimestampUs {
        self.starts_at
    }

    /// Returns the counts, newest first.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    pub(crate) fn step(&mut self, counters: &Counters, now: TimestampUs, cost: Cost) -> Verdict {
        if self.counts.len() == counters.count() {
            return counters.step(&mut self.starts_at, &mut self.counts, now, cost);
        }
        let mut fitting = self.fitting(counters);
        let verdict = counters.step(&mut fitting.starts_at, &mut fitting.counts, now, cost);
        if verdict.is_allowed() && cost != Cost::Peek {
            let is_empty = fitting.counts.iter().all(|&count| count == 0);
            *self = if is_empty { Self::default() } else { fitting };
        }
        verdict
    }

    pub(crate) fn is_idle(&self, counters: &Counters, now: TimestampUs) -> bool {
        if self.counts.len() == counters.count() {
            return counters.is_idle(self.starts_at, &self.counts, now);
        }
        let fitting = self.fitting(counters);
        counters.is_idle(fitting.starts_at, &fitting.counts, now)
    }

    /// Returns the state with the current number of counters. If the number has changed, the whole
    /// sum moves to the latest time that the newest count can have. Spending is then forgotten
    /// later than it would have been, never earlier.
    fn fitting(&self, counters: &Counters) -> Self {
        let mut counts = vec![0; counters.count()].into_boxed_slice();
        let mut starts_at = TimestampUs(0);
        if let Some(parts) = self.counts.len().checked_sub(1) {
            let window = counters
                .width()
                .0
                .saturating_mul(counters.count() as u64 - 1);
            let width = window / (parts as u64).max(1);
            let last = self.starts_at + DurationUs(width.saturating_sub(1));
            starts_at = TimestampUs(last.0 - last.0 % counters.width().0);
            counts[0] = self
                .counts
                .iter()
                .fold(0, |sum: u32, &count| sum.saturating_add(count));
        }
        Self { starts_at, counts }
    }

    pub(crate) fn write_numbers(&self, put: &mut dyn FnMut(u64)) {
        if !self.counts.is_empty() {
            counters::write_numbers(self.starts_at, &self.counts, put);
        }
    }

    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let (starts_at, counts) = counters::from_numbers(numbers, PARTS_MOST as usize + 1)?;
        let counts = counts.into_boxed_slice();
        Some(Self { starts_at, counts })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::counters::{AddThenRead, CounterIndex};
    use crate::testing::{Client, MINUTE, a_minute, at};

    fn client(calls: u32, parts: u32) -> Client<SubWindows> {
        Client::new(SubWindows::new(a_minute(calls), parts).unwrap())
    }

    fn to_read(parts: u32) -> Vec<CounterIndex> {
        let counters = client(100, parts).limit.counters();
        let now = at("07:10:20");
        let times = AddThenRead {
            added_at: now,
            read_at: now,
        };
        counters.to_read(times).collect()
    }

    // Muscat, "Distributed Rate-Limiting Algorithms", 2022: five windows of 15 seconds for one of
    // 60, the oldest weighs (15 - elapsed)/15; in the extreme 60 windows of a second.
    #[test]
    fn of_five_quarter_minutes_the_oldest_weighs_its_remaining_part() {
        let mut client = client(1_000, 4);
        for time in ["07:09:14", "07:09:29", "07:09:44", "07:09:59", "07:10:10"] {
            assert!(client.takes(time, 150));
        }
        for (time, used) in [
            ("07:10:10", 600 + 50),
            ("07:10:11", 600 + 40),
            ("07:10:14", 600 + 10),
            ("07:10:15", 600),
            ("07:10:16", 450 + 140),
            ("07:11:10", 50),
            ("07:11:15", 0),
        ] {
            assert_eq!(client.remaining(time), 1_000 - used, "{time}");
        }
        assert_eq!(to_read(4).len(), 5);
        assert_eq!(to_read(60).len(), 61);
        let newest = at("07:10:20").0 / 1_000_000;
        let indexes: Vec<_> = (0..61).map(|age| CounterIndex(newest - age)).collect();
        assert_eq!(to_read(60), indexes);
    }

    #[test]
    fn one_part_is_a_sliding_window() {
        let mut client = client(100, 1);
        client.takes("00:00:30", 60);
        assert_eq!(client.remaining("00:01:43"), 100 - 17);
    }

    #[test]
    fn a_rejected_client_may_return_when_the_oldest_part_has_gone() {
        let mut client = client(100, 4);
        client.takes("07:10:00", 60);
        client.takes("07:10:20", 40);
        assert_eq!(client.retry_at("07:10:59", 1), Some(at("07:11:00.25")));
        assert_eq!(client.retry_at("07:10:59", 60), Some(at("07:11:15")));
        assert_eq!(client.retry_at("07:10:59", 61), Some(at("07:11:15.375")));
        assert_eq!(client.retry_at("07:10:59", 101), None);
        assert_eq!(client.full_at("07:10:59"), at("07:11:30"));
    }

    #[test]
    fn a_window_is_divided_into_up_to_120_equal_parts() {
        let check = |parts, error| assert_eq!(SubWindows::new(a_minute(1), parts).err(), error);
        check(1, None);
        check(120, None);
        for parts in [0, 121] {
            check(
                parts,
                Some(SettingsError::PartsOutOfRange { parts, most: 120 }),
            );
        }
        let window = MINUTE;
        check(7, Some(SettingsError::PartsUneven { window, parts: 7 }));
    }

    #[test]
    fn what_was_spent_stays_spent_when_limit_or_parts_change() {
        let mut client = client(100, 4);
        client.takes("07:10:00", 20);
        client.takes("07:10:20", 40);
        for (calls, parts, left) in [(50, 4, 0), (200, 4, 140), (100, 60, 40), (100, 1, 40)] {
            client.limit = SubWindows::new(a_minute(calls), parts).unwrap();
            assert_eq!(client.remaining("07:10:30"), left, "{calls} {parts}");
        }
        client.limit = SubWindows::new(a_minute(100), 60).unwrap();
        assert!(client.takes("07:10:40", 30));
        assert_eq!(client.remaining("07:11:29"), 10);
        assert_eq!(client.remaining("07:11:30"), 70);
        assert_eq!(client.full_at("07:11:30"), at("07:11:41"));
    }

    fn strict(calls: u32, parts: u32) -> Client<SubWindows> {
        Client::new(SubWindows::strict(a_minute(calls), parts).unwrap())
    }

    #[test]
    fn the_oldest_part_counts_in_full_until_it_has_left() {
        let mut client = strict(1_000, 4);
        for time in ["07:09:14", "07:09:29", "07:09:44", "07:09:59", "07:10:10"] {
            assert!(client.takes(time, 150));
        }
        for (time, used) in [
            ("07:10:10", 750),
            ("07:10:14.999999", 750),
            ("07:10:15", 600),
            ("07:11:14.999999", 150),
            ("07:11:15", 0),
        ] {
            assert_eq!(client.remaining(time), 1_000 - used, "{time}");
        }
    }

    #[test]
    fn a_client_waits_for_up_to_one_part_too_long() {
        let mut early = strict(100, 4);
        early.send("07:10:00", 100);
        assert_eq!(early.retry_at("07:10:00", 1), Some(at("07:11:15")));
        let mut late = strict(100, 4);
        late.send("07:10:14.999999", 100);
        assert_eq!(late.retry_at("07:10:15", 1), Some(at("07:11:15")));
    }

    #[test]
    fn no_more_than_the_limit_passes_around_the_edge_of_a_minute() {
        let mut client = strict(100, 4);
        let calls = client.send("07:09:59", 100) + client.send("07:10:00", 100);
        assert_eq!(calls, 100);
    }
}
