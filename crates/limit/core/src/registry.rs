//! Table of algorithms: the name, the settings, the needs from a store and the stored form of each.
//! Longer than other files, because it is one table.
//!
//! The config, stores, Envoy's files, the lab and the docs' tests read it. The algorithm itself
//! states how much a window allows at most ([`crate::algorithm::Algorithm`]).
//!
//! To add an algorithm: write its file, name it in `lib.rs`, add it to [`Policy`] and [`State`],
//! and add a row here. The compiler then points at every match that needs a new arm.

use alloc::boxed::Box;

use crate::counters::Oldest;
use crate::fixed_window::{self, FixedWindow};
use crate::gcra::{self, Gcra};
use crate::leaky_bucket::{self, LeakyBucket};
use crate::policy::{Needs, Policy, State};
use crate::rate::Rate;
use crate::settings::{Setting, Settings, SettingsError};
use crate::sliding_log::{self, SlidingLog};
use crate::sliding_window::{self, SlidingWindow};
use crate::sub_windows::{self, SubWindows};
use crate::token_bucket::{self, TokenBucket};

/// Default number of sub-windows: a client waits at most a tenth of the window too long.
pub const SUB_WINDOWS_USUAL: u32 = 10;

/// Properties of an algorithm.
#[derive(Debug)]
pub struct Row {
    /// Name in files and flags.
    pub name: &'static str,
    /// Settings besides the rate.
    pub settings: &'static [Setting],
    /// Contents of a state.
    pub remembers: Remembers,
    /// Treatment of an allowed request that comes ahead of the rate.
    pub early: Early,
    /// Rule by which leases keep the limit.
    pub lease_rule: LeaseRule,
    /// Letter of the limit in stored records, before its settings. It is never reused for another
    /// algorithm.
    pub letter: &'static str,
    /// Letter of a state in stored records, before its numbers. Algorithms that read each other's
    /// states share one. It is never reused.
    pub state_letter: &'static str,
    /// Number in keys of stores, shared like the letter of states. It is never reused.
    pub number: u8,
    /// Builds a limit; ignores settings that the algorithm does not have.
    build: fn(Rate, &Settings) -> Result<Policy, SettingsError>,
    /// Reads a state from stored numbers; `None` if they are malformed.
    pub(crate) read_state: fn(&[u64]) -> Option<State>,
}

/// Contents of a state, which determine how a store can keep it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Remembers {
    /// Each request.
    Requests,
    /// Numbers of requests, in counters for intervals of time; see [`crate::counters`].
    Counts,
    /// Number of requests left, and the time of that count.
    Tokens,
    /// Time at which everything taken is paid off.
    Time,
}

/// Treatment of an allowed request that comes ahead of the rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Early {
    /// Goes on at once.
    AtOnce,
    /// Waits for its turn.
    Waits,
}

/// Rule that widens a limit for leases, so that spending keeps the promised limit; see
/// [`crate::leases::widened`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseRule {
    /// Unchanged requests in a window that is longer by one lease.
    LongerWindow,
    /// Unchanged rate with a burst that is smaller by what the rate gives during a lease.
    SmallerBurst,
    /// Unchanged limit: a lease ends with its window.
    EndsWithWindow,
    /// Leases are impossible: all requests need positions in one queue.
    Never,
}

/// Generates the list of algorithms from the rows, so that none is missing.
macro_rules! table {
    ($($kind:ident => $row:expr,)+) => {
        /// One of the algorithms, without its settings.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[expect(missing_docs, reason = "documented in its module")]
        pub enum AlgorithmKind {
            $($kind,)+
        }

        impl AlgorithmKind {
            /// All algorithms, the default first.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// Default algorithm.
            pub const USUAL: Self = Self::ALL[0];

            /// Returns the properties of the algorithm.
            #[must_use]
            pub const fn row(self) -> &'static Row {
                match self {
                    $(Self::$kind => &const { $row },)+
                }
            }
        }
    };
}

table! {
    SubWindowsStrict => Row {
        name: "sub-windows-strict",
        settings: &[Setting::SubWindows],
        remembers: Remembers::Counts,
        early: Early::AtOnce,
        lease_rule: LeaseRule::LongerWindow,
        letter: "x",
        state_letter: "w",
        number: 6,
        build: |rate, settings| SubWindows::strict(rate, parts(settings)).map(Policy::SubWindows),
        read_state: read_sub_windows,
    },
    SlidingLog => Row {
        name: "sliding-log",
        settings: &[],
        remembers: Remembers::Requests,
        early: Early::AtOnce,
        lease_rule: LeaseRule::LongerWindow,
        letter: "e",
        state_letter: "d",
        number: 3,
        build: |rate, _| SlidingLog::new(rate).map(Policy::SlidingLog),
        read_state: |numbers| {
            let state = sliding_log::State::from_numbers(numbers)?;
            Some(State::SlidingLog(Box::new(state)))
        },
    },
    FixedWindow => Row {
        name: "fixed-window",
        settings: &[],
        remembers: Remembers::Counts,
        early: Early::AtOnce,
        lease_rule: LeaseRule::EndsWithWindow,
        letter: "f",
        state_letter: "f",
        number: 1,
        build: |rate, _| Ok(Policy::FixedWindow(FixedWindow::new(rate))),
        read_state: |numbers| {
            fixed_window::State::from_numbers(numbers).map(State::FixedWindow)
        },
    },
    SlidingWindow => Row {
        name: "sliding-window",
        settings: &[],
        remembers: Remembers::Counts,
        early: Early::AtOnce,
        lease_rule: LeaseRule::LongerWindow,
        letter: "s",
        state_letter: "s",
        number: 2,
        build: |rate, _| Ok(Policy::SlidingWindow(SlidingWindow::new(rate))),
        read_state: |numbers| {
            sliding_window::State::from_numbers(numbers).map(State::SlidingWindow)
        },
    },
    SubWindows => Row {
        name: "sub-windows",
        settings: &[Setting::SubWindows],
        remembers: Remembers::Counts,
        early: Early::AtOnce,
        lease_rule: LeaseRule::LongerWindow,
        letter: "w",
        state_letter: "w",
        number: 6,
        build: |rate, settings| SubWindows::new(rate, parts(settings)).map(Policy::SubWindows),
        read_state: read_sub_windows,
    },
    TokenBucket => Row {
        name: "token-bucket",
        settings: &[Setting::Burst, Setting::InitialBurst],
        remembers: Remembers::Tokens,
        early: Early::AtOnce,
        lease_rule: LeaseRule::SmallerBurst,
        letter: "t",
        state_letter: "t",
        number: 4,
        build: |rate, settings| {
            let burst = burst(rate, settings);
            let initial_burst = settings.initial_burst.unwrap_or(burst);
            TokenBucket::new(rate, burst, initial_burst).map(Policy::TokenBucket)
        },
        read_state: |numbers| {
            token_bucket::State::from_numbers(numbers).map(State::TokenBucket)
        },
    },
    Gcra => Row {
        name: "gcra",
        settings: &[Setting::Burst],
        remembers: Remembers::Time,
        early: Early::AtOnce,
        lease_rule: LeaseRule::SmallerBurst,
        letter: "g",
        state_letter: "g",
        number: 5,
        build: |rate, settings| Gcra::new(rate, burst(rate, settings)).map(Policy::Gcra),
        read_state: |numbers| gcra::State::from_numbers(numbers).map(State::Gcra),
    },
    LeakyBucket => Row {
        name: "leaky-bucket",
        settings: &[Setting::Queue],
        remembers: Remembers::Time,
        early: Early::Waits,
        lease_rule: LeaseRule::Never,
        letter: "l",
        state_letter: "l",
        number: 8,
        build: |rate, settings| {
            let queue = settings.queue.unwrap_or_else(|| rate.requests());
            Ok(Policy::LeakyBucket(LeakyBucket::new(rate, queue)))
        },
        read_state: |numbers| {
            leaky_bucket::State::from_numbers(numbers).map(State::LeakyBucket)
        },
    },
}

fn parts(settings: &Settings) -> u32 {
    settings.sub_windows.unwrap_or(SUB_WINDOWS_USUAL)
}

/// Returns how many requests may come at once: by default the requests of the rate. With a rate of
/// zero no burst allows any.
#[must_use]
pub fn burst(rate: Rate, settings: &Settings) -> u32 {
    settings.burst.unwrap_or_else(|| rate.requests().max(1))
}

fn read_sub_windows(numbers: &[u64]) -> Option<State> {
    sub_windows::State::from_numbers(numbers).map(State::SubWindows)
}

impl AlgorithmKind {
    /// Returns the name in files and flags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the algorithm with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether the algorithm has this setting.
    #[must_use]
    pub fn has(self, setting: Setting) -> bool {
        self.row().settings.contains(&setting)
    }

    /// Builds a limit by this algorithm. Missing settings take their defaults; those that the
    /// algorithm does not have are ignored.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] of the algorithm.
    pub fn build(self, rate: Rate, settings: &Settings) -> Result<Policy, SettingsError> {
        (self.row().build)(rate, settings)
    }
}

impl Policy {
    /// Returns the algorithm.
    #[must_use]
    pub const fn kind(&self) -> AlgorithmKind {
        match self {
            Self::SlidingLog(_) => AlgorithmKind::SlidingLog,
            Self::FixedWindow(_) => AlgorithmKind::FixedWindow,
            Self::SlidingWindow(_) => AlgorithmKind::SlidingWindow,
            Self::SubWindows(sub) => match sub.oldest() {
                Oldest::Falling => AlgorithmKind::SubWindows,
                Oldest::Whole => AlgorithmKind::SubWindowsStrict,
            },
            Self::TokenBucket(_) => AlgorithmKind::TokenBucket,
            Self::Gcra(_) => AlgorithmKind::Gcra,
            Self::LeakyBucket(_) => AlgorithmKind::LeakyBucket,
        }
    }

    /// Returns the properties of the algorithm.
    #[must_use]
    pub const fn row(&self) -> &'static Row {
        self.kind().row()
    }

    /// Returns what a store must offer.
    #[must_use]
    pub const fn needs(&self) -> Needs {
        match self.row().remembers {
            Remembers::Counts => Needs::AtomicAdd,
            Remembers::Requests | Remembers::Tokens | Remembers::Time => Needs::Transaction,
        }
    }

    /// Returns each setting of the algorithm with its value, in the order of the row.
    pub fn each_setting(&self) -> impl Iterator<Item = (Setting, u32)> + use<> {
        let settings = self.settings();
        let all = self.row().settings.iter();
        all.filter_map(move |setting| Some((*setting, settings.get(*setting)?)))
    }
}

impl State {
    /// Returns one of the algorithms that read this state; `None` for a new client.
    #[must_use]
    pub const fn kind(&self) -> Option<AlgorithmKind> {
        Some(match self {
            Self::New => return None,
            Self::SlidingLog(_) => AlgorithmKind::SlidingLog,
            Self::FixedWindow(_) => AlgorithmKind::FixedWindow,
            Self::SlidingWindow(_) => AlgorithmKind::SlidingWindow,
            Self::SubWindows(_) => AlgorithmKind::SubWindows,
            Self::TokenBucket(_) => AlgorithmKind::TokenBucket,
            Self::Gcra(_) => AlgorithmKind::Gcra,
            Self::LeakyBucket(_) => AlgorithmKind::LeakyBucket,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm as _;
    use crate::cost::Cost;
    use crate::testing::{a_minute, at};
    use crate::{algorithm, codec};

    fn policies() -> impl Iterator<Item = (AlgorithmKind, Policy)> {
        let all = AlgorithmKind::ALL.iter();
        all.map(|kind| {
            let policy = kind.build(a_minute(100), &Settings::default());
            (*kind, policy.unwrap())
        })
    }

    #[test]
    fn counters_need_an_add_and_all_others_a_transaction() {
        for (kind, policy) in policies() {
            let needs = match kind {
                AlgorithmKind::FixedWindow
                | AlgorithmKind::SlidingWindow
                | AlgorithmKind::SubWindows
                | AlgorithmKind::SubWindowsStrict => Needs::AtomicAdd,
                AlgorithmKind::SlidingLog
                | AlgorithmKind::TokenBucket
                | AlgorithmKind::Gcra
                | AlgorithmKind::LeakyBucket => Needs::Transaction,
            };
            assert_eq!(policy.needs(), needs, "{kind:?}");
            let has_counters = policy.counters().is_some();
            assert_eq!(has_counters, needs == Needs::AtomicAdd, "{kind:?}");
        }
    }

    #[test]
    fn a_limit_rebuilt_from_its_settings_is_the_same() {
        for (kind, policy) in policies() {
            assert_eq!(policy.kind(), kind);
            assert_eq!(AlgorithmKind::named(kind.name()), Some(kind));
            let again = kind.build(policy.rate(), &policy.settings());
            assert_eq!(again, Ok(policy));
            // The row lists exactly the settings that the algorithm has.
            for setting in Setting::ALL {
                let is_set = policy.settings().get(setting).is_some();
                assert_eq!(is_set, kind.has(setting), "{kind:?} {setting:?}");
            }
        }
    }

    #[test]
    fn names_and_letters_distinguish_algorithms() {
        for (at, one) in AlgorithmKind::ALL.iter().enumerate() {
            for other in &AlgorithmKind::ALL[at + 1..] {
                let (one, other) = (one.row(), other.row());
                assert_ne!(one.name, other.name);
                assert_ne!(one.letter, other.letter);
                let is_shared = one.state_letter == other.state_letter;
                assert_eq!(is_shared, one.number == other.number, "{}", one.name);
            }
        }
    }

    #[test]
    fn a_written_state_reads_back_unchanged() {
        for (kind, policy) in policies() {
            let mut state = State::New;
            let now = at("07:10:00");
            algorithm::Algorithm::step(&policy, &mut state, now, Cost::take(3));
            let mut text = alloc::string::String::new();
            codec::write(&state, &mut text);
            assert_eq!(codec::read(&text), Some(state.clone()), "{text}");
            let letter = state.kind().map(|kind| kind.row().state_letter);
            assert_eq!(letter, Some(kind.row().state_letter));
        }
    }

    #[test]
    fn only_algorithms_that_let_requests_wait_delay_them() {
        for (kind, policy) in policies() {
            let mut state = State::New;
            let now = at("07:10:00");
            let verdicts = [(); 2].map(|()| policy.step(&mut state, now, Cost::ONE));
            let second = crate::verdict::Outcome::Allow {
                delay: crate::time::DurationUs::ZERO,
            };
            let waits = verdicts[1].outcome != second;
            assert_eq!(waits, kind.row().early == Early::Waits, "{kind:?}");
        }
    }
}
