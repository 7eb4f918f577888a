//! Any of the algorithms in one type: for stores, which keep states of all of them, and for the
//! config, which selects one. Their names are in [`crate::registry`].

use alloc::boxed::Box;

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::counters::Counters;
use crate::fixed_window::{self, FixedWindow};
use crate::gcra::{self, Gcra};
use crate::leaky_bucket::{self, LeakyBucket};
use crate::rate::Rate;
use crate::settings::Settings;
use crate::sliding_log::{self, SlidingLog};
use crate::sliding_window::{self, SlidingWindow};
use crate::sub_windows::{self, SubWindows};
use crate::time::{DurationUs, TimestampUs};
use crate::token_bucket::{self, TokenBucket};
use crate::verdict::Verdict;

/// One of the algorithms, with its settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "documented in its module")]
pub enum Policy {
    SlidingLog(SlidingLog),
    FixedWindow(FixedWindow),
    SlidingWindow(SlidingWindow),
    /// Sub-windows of both kinds.
    SubWindows(SubWindows),
    TokenBucket(TokenBucket),
    Gcra(Gcra),
    LeakyBucket(LeakyBucket),
}

/// State of one client, by any algorithm.
///
/// A state of another algorithm counts as that of a new client. Both kinds of sub-windows read each
/// other's states.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "documented in its module")]
pub enum State {
    /// State of a client without requests.
    #[default]
    New,
    /// Boxed, as the only large one.
    SlidingLog(Box<sliding_log::State>),
    FixedWindow(fixed_window::State),
    SlidingWindow(sliding_window::State),
    SubWindows(sub_windows::State),
    TokenBucket(token_bucket::State),
    Gcra(gcra::State),
    LeakyBucket(leaky_bucket::State),
}

/// Operations that a store needs to keep the states of a policy.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Needs {
    /// Adding to a counter and reading counters; see [`crate::counters`].
    AtomicAdd,
    /// Reading a state and writing it back if no other writer was faster.
    Transaction,
}

/// Evaluates one expression for the algorithm of any policy.
macro_rules! each {
    ($policy:expr, $algorithm:ident => $body:expr) => {
        match $policy {
            Policy::SlidingLog($algorithm) => $body,
            Policy::FixedWindow($algorithm) => $body,
            Policy::SlidingWindow($algorithm) => $body,
            Policy::SubWindows($algorithm) => $body,
            Policy::TokenBucket($algorithm) => $body,
            Policy::Gcra($algorithm) => $body,
            Policy::LeakyBucket($algorithm) => $body,
        }
    };
}

/// Evaluates one expression for the algorithm of any policy and its own state, or another one if
/// the state belongs to another algorithm.
macro_rules! with_state {
    ($policy:expr, $state:expr, ($algorithm:ident, $own:ident) => $body:expr, _ => $other:expr) => {
        match $policy {
            Policy::SlidingLog($algorithm) => match $state {
                State::SlidingLog($own) => $body,
                _ => $other,
            },
            Policy::FixedWindow($algorithm) => match $state {
                State::FixedWindow($own) => $body,
                _ => $other,
            },
            Policy::SlidingWindow($algorithm) => match $state {
                State::SlidingWindow($own) => $body,
                _ => $other,
            },
            Policy::SubWindows($algorithm) => match $state {
                State::SubWindows($own) => $body,
                _ => $other,
            },
            Policy::TokenBucket($algorithm) => match $state {
                State::TokenBucket($own) => $body,
                _ => $other,
            },
            Policy::Gcra($algorithm) => match $state {
                State::Gcra($own) => $body,
                _ => $other,
            },
            Policy::LeakyBucket($algorithm) => match $state {
                State::LeakyBucket($own) => $body,
                _ => $other,
            },
        }
    };
}

impl Policy {
    /// Returns the rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        each!(self, algorithm => algorithm.rate())
    }

    /// Returns all settings of the algorithm besides the rate.
    #[must_use]
    pub fn settings(&self) -> Settings {
        each!(self, algorithm => algorithm.settings())
    }

    /// Returns the counters for a store that can only add; `None` if this policy needs more.
    #[must_use]
    pub fn counters(&self) -> Option<Counters> {
        match self {
            Self::FixedWindow(algorithm) => Some(algorithm.counters()),
            Self::SlidingWindow(algorithm) => Some(algorithm.counters()),
            Self::SubWindows(algorithm) => Some(algorithm.counters()),
            Self::SlidingLog(_) | Self::TokenBucket(_) | Self::Gcra(_) | Self::LeakyBucket(_) => {
                None
            }
        }
    }

    /// Returns the time until everything is free at once, whatever was taken; `None` if the
    /// algorithm frees it bit by bit.
    #[must_use]
    pub fn resets_after(&self, now: TimestampUs) -> Option<DurationUs> {
        let counters = self.counters().filter(|counters| counters.count() == 1)?;
        let width = counters.width().0;
        Some(DurationUs(width - now.0 % width))
    }

    /// Returns how long after its last request a client is remembered although its limit is fully
    /// free, because a new client would get more; zero if it would not.
    #[must_use]
    pub fn newcomer_after(&self) -> DurationUs {
        match self {
            Self::TokenBucket(bucket) => bucket.newcomer_after(),
            Self::SlidingLog(_)
            | Self::FixedWindow(_)
            | Self::SlidingWindow(_)
            | Self::SubWindows(_)
            | Self::Gcra(_)
            | Self::LeakyBucket(_) => DurationUs::ZERO,
        }
    }

    /// Returns the state of a new client.
    fn first_state(&self) -> State {
        match self {
            Self::SlidingLog(_) => State::SlidingLog(Box::default()),
            Self::FixedWindow(_) => State::FixedWindow(fixed_window::State::default()),
            Self::SlidingWindow(_) => State::SlidingWindow(sliding_window::State::default()),
            Self::SubWindows(_) => State::SubWindows(sub_windows::State::default()),
            Self::TokenBucket(_) => State::TokenBucket(token_bucket::State::default()),
            Self::Gcra(_) => State::Gcra(gcra::State::default()),
            Self::LeakyBucket(_) => State::LeakyBucket(leaky_bucket::State::default()),
        }
    }

    /// Steps a client that has no state of this algorithm yet.
    fn step_first(&self, state: &mut State, now: TimestampUs, cost: Cost) -> Verdict {
        let mut first = self.first_state();
        let verdict = self.step(&mut first, now, cost);
        if verdict.is_allowed() && matches!(cost, Cost::Take(_)) {
            *state = first;
        }
        verdict
    }
}

impl State {
    /// Writes the state as numbers; none for a new client.
    pub(crate) fn write_numbers(&self, put: &mut dyn FnMut(u64)) {
        match self {
            Self::New => {}
            Self::SlidingLog(state) => state.write_numbers(put),
            Self::FixedWindow(state) => state.write_numbers(put),
            Self::SlidingWindow(state) => state.write_numbers(put),
            Self::SubWindows(state) => state.write_numbers(put),
            Self::TokenBucket(state) => state.write_numbers(put),
            Self::Gcra(state) | Self::LeakyBucket(state) => state.write_numbers(put),
        }
    }
}

impl Algorithm for Policy {
    type State = State;

    fn step(&self, state: &mut State, now: TimestampUs, cost: Cost) -> Verdict {
        with_state!(
            self, &mut *state,
            (algorithm, own) => algorithm.step(own, now, cost),
            _ => self.step_first(state, now, cost)
        )
    }

    fn is_idle(&self, state: &State, now: TimestampUs) -> bool {
        with_state!(
            self, state,
            (algorithm, own) => algorithm.is_idle(own, now),
            _ => true
        )
    }

    fn window_cost_max(&self, cost_max: u32) -> u64 {
        each!(self, algorithm => algorithm.window_cost_max(cost_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Client, a_minute};

    fn all() -> [Policy; 8] {
        let rate = a_minute(100);
        [
            Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
            Policy::FixedWindow(FixedWindow::new(rate)),
            Policy::SlidingWindow(SlidingWindow::new(rate)),
            Policy::SubWindows(SubWindows::new(rate, 4).unwrap()),
            Policy::SubWindows(SubWindows::strict(rate, 4).unwrap()),
            Policy::TokenBucket(TokenBucket::new(rate, 100, 150).unwrap()),
            Policy::Gcra(Gcra::new(rate, 10).unwrap()),
            Policy::LeakyBucket(LeakyBucket::new(rate, 10)),
        ]
    }

    #[test]
    fn each_states_what_a_window_allows_at_most() {
        let most = all().map(|policy| policy.window_cost_max(1));
        assert_eq!(most, [100, 200, 199, 199, 100, 249, 109, 100]);
        let most = all().map(|policy| policy.window_cost_max(7));
        assert_eq!(most, [100, 200, 199, 199, 100, 249, 109, 106]);
    }

    #[test]
    fn a_state_of_another_algorithm_is_that_of_a_new_client() {
        for made_by in all() {
            let mut client = Client::new(made_by);
            assert_eq!(client.send("07:10:00", 5), 5);
            let made = client.state.clone();
            for policy in all() {
                let understands = core::mem::discriminant(&policy.first_state())
                    == core::mem::discriminant(&made);
                client.limit = policy;
                client.state = made.clone();
                let fresh = Client::new(policy).remaining("07:10:00");
                assert_eq!(client.remaining("07:10:00") == fresh, !understands);
                assert_eq!(client.state, made, "a peek changes nothing");
                assert!(client.takes("07:10:00", 1));
                assert!(client.remaining("07:10:00") < fresh);
            }
        }
    }

    #[test]
    fn a_state_of_any_algorithm_is_small() {
        assert!(size_of::<State>() <= 32, "{}", size_of::<State>());
        assert!(size_of::<token_bucket::State>() <= 24);
    }
}
