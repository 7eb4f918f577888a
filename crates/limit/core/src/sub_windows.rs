//! Sub-windows: how many calls were there in the last minute, by the counts of its parts?
//!
//! As a sliding window, with a counter for each part of the window, so that only the part that
//! leaves it is guessed. More parts make a wrong guess shorter, but the bound is the same for all:
//! a client that puts all its calls at the end of a part gets nearly twice the limit. Source:
//! Muscat, "Distributed Rate-Limiting Algorithms", 2022. [`crate::sub_windows_strict`] keeps the
//! limit.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::counters::{Counters, Oldest};
use crate::rate::Rate;
pub use crate::ring::State;
use crate::settings::SettingsError;
use crate::time::{MicroSpan, Micros};
use crate::verdict::Verdict;

/// The largest number of parts: half seconds of a minute. Each costs a counter, or a read from a
/// store.
pub const PARTS_MOST: u32 = 120;

/// A rate, and the parts of its window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SubWindows {
    rate: Rate,
    parts: u32,
}

impl SubWindows {
    /// A window of `parts` parts.
    ///
    /// # Errors
    ///
    /// [`SettingsError::PartsOutOfRange`] for none and for more than [`PARTS_MOST`],
    /// [`SettingsError::PartsUneven`] if the window is not so many times a whole microsecond.
    pub const fn new(rate: Rate, parts: u32) -> Result<Self, SettingsError> {
        if let Err(error) = check_parts(rate, parts) {
            return Err(error);
        }
        Ok(Self { rate, parts })
    }

    /// How many calls in how long.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// How many parts the window has.
    #[must_use]
    pub const fn parts(&self) -> u32 {
        self.parts
    }

    /// The counters of a store that can only add.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        let width = MicroSpan(self.rate.window().0 / self.parts as u64);
        Counters::new(self.rate.calls(), width, self.parts, Oldest::Falling)
    }
}

pub(crate) const fn check_parts(rate: Rate, parts: u32) -> Result<(), SettingsError> {
    if parts == 0 || parts > PARTS_MOST {
        let most = PARTS_MOST;
        return Err(SettingsError::PartsOutOfRange { parts, most });
    }
    let window = rate.window();
    if !window.0.is_multiple_of(parts as u64) {
        return Err(SettingsError::PartsUneven { window, parts });
    }
    Ok(())
}

impl Algorithm for SubWindows {
    type State = State;

    fn step(&self, state: &mut State, now: Micros, cost: Cost) -> Verdict {
        state.step(&self.counters(), now, cost)
    }

    fn is_idle(&self, state: &State, now: Micros) -> bool {
        state.is_idle(&self.counters(), now)
    }

    /// `2 * calls - 1`, whatever the number of parts. Any window lies in `parts + 1` of our
    /// stretches. When the last call of it is judged, with `elapsed` of the newest stretch gone,
    /// there are at most `calls - oldest * (width - elapsed) / width` in all but the oldest, and at
    /// most `oldest` in that: together less than `calls + oldest`, as `elapsed` is less than the
    /// width.
    fn most_in_any_window(&self, _cost_max: u32) -> u64 {
        (2 * u64::from(self.rate.calls())).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{AddThenRead, CounterIndex};
    use crate::testing::{Client, MINUTE, a_minute, at};

    fn client(calls: u32, parts: u32) -> Client<SubWindows> {
        Client::new(SubWindows::new(a_minute(calls), parts).unwrap())
    }

    fn to_read(parts: u32) -> alloc::vec::Vec<CounterIndex> {
        let counters = client(100, parts).limit.counters();
        let now = at("07:10:20");
        let call = AddThenRead {
            added_at: now,
            read_at: now,
        };
        counters.to_read(call).collect()
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
        let indexes: alloc::vec::Vec<_> = (0..61).map(|age| CounterIndex(newest - age)).collect();
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
}
