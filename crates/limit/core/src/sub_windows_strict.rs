//! Strict sub-windows: how many calls can there have been in the last minute, at most?
//!
//! As [`crate::sub_windows`], but the part that leaves the window counts whole until it has left.
//! So no window ever has more than the limit, from counters alone; the price is that a client is
//! held back for up to one part too long.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::counters::{Counters, Oldest};
use crate::rate::Rate;
use crate::settings::SettingsError;
pub use crate::sub_windows::State;
use crate::sub_windows::check_parts;
use crate::time::{MicroSpan, Micros};
use crate::verdict::Verdict;

/// A rate, and the parts of its window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SubWindowsStrict {
    rate: Rate,
    parts: u32,
}

impl SubWindowsStrict {
    /// A window of `parts` parts.
    ///
    /// # Errors
    ///
    /// Those of [`crate::sub_windows::SubWindows::new`].
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
        Counters::new(self.rate.calls(), width, self.parts, Oldest::Whole)
    }
}

impl Algorithm for SubWindowsStrict {
    type State = State;

    fn step(&self, state: &mut State, now: Micros, cost: Cost) -> Verdict {
        state.step(&self.counters(), now, cost)
    }

    fn is_idle(&self, state: &State, now: Micros) -> bool {
        state.is_idle(&self.counters(), now)
    }

    /// `calls`: any window lies in `parts + 1` of our stretches, and all of them count whole when
    /// its last call is judged.
    fn most_in_any_window(&self, _cost_max: u32) -> u64 {
        u64::from(self.rate.calls())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Client, a_minute, at};

    fn client(calls: u32, parts: u32) -> Client<SubWindowsStrict> {
        Client::new(SubWindowsStrict::new(a_minute(calls), parts).unwrap())
    }

    #[test]
    fn the_oldest_part_counts_whole_until_it_has_left() {
        let mut client = client(1_000, 4);
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
    fn a_client_is_held_back_for_up_to_one_part_too_long() {
        let mut early = client(100, 4);
        early.call("07:10:00", 100);
        assert_eq!(early.retry_at("07:10:00", 1), Some(at("07:11:15")));
        let mut late = client(100, 4);
        late.call("07:10:14.999999", 100);
        assert_eq!(late.retry_at("07:10:15", 1), Some(at("07:11:15")));
    }

    #[test]
    fn no_more_than_the_limit_passes_around_the_edge_of_a_minute() {
        let mut client = client(100, 4);
        let calls = client.call("07:09:59", 100) + client.call("07:10:00", 100);
        assert_eq!(calls, 100);
    }
}
