//! The table of algorithms: what each is called, what is set, what it needs of a store and how
//! stores write it down. Longer than other files, for it is one table.
//!
//! The config, stores, Envoy's files, the lab and the docs' tests read it. What is admitted in a
//! window at most is said by the algorithm itself ([`crate::algorithm::Algorithm`]).
//!
//! To add an algorithm: write its file, name it in `lib.rs`, add it to [`Policy`] and [`State`],
//! and add a row here. What does not compile then must say something about it.

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

/// Parts of a window where nobody says how many: a client is held back for a tenth of it too long.
pub const SUB_WINDOWS_USUAL: u32 = 10;

/// What is known of an algorithm.
#[derive(Debug)]
pub struct Row {
    /// The name in files and flags.
    pub name: &'static str,
    /// What can be set beside the rate.
    pub settings: &'static [Setting],
    /// What a state holds.
    pub remembers: Remembers,
    /// What becomes of a call that comes ahead of the rate.
    pub early: Early,
    /// By which limit is lent.
    pub lent: LeaseRule,
    /// The limit in records of stores, before its settings. None ever gets another meaning.
    pub letter: &'static str,
    /// A state in records of stores, before its numbers. Algorithms that understand each other's
    /// states share one. None ever gets another meaning.
    pub state_letter: &'static str,
    /// A number in keys of stores, shared as the letter of states is. None ever gets another
    /// meaning.
    pub number: u8,
    /// Makes a limit; settings that the algorithm does not have are not looked at.
    build: fn(Rate, &Settings) -> Result<Policy, SettingsError>,
    /// Makes a state of numbers that were written down; `None` if they are none.
    pub(crate) read_state: fn(&[u64]) -> Option<State>,
}

/// What a state holds, which says how a store can keep it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Remembers {
    /// Each call.
    Calls,
    /// How many calls there were, in counters of stretches of time; see [`crate::counters`].
    Counts,
    /// How many calls are left, and when that was so.
    Tokens,
    /// When all that was charged is over.
    Time,
}

/// What becomes of a call that comes ahead of the rate and is admitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Early {
    /// It goes on at once.
    GoesOn,
    /// It waits for its turn.
    Waits,
}

/// By which limit is lent, so that what is spent keeps the one that was promised; see
/// [`crate::lending::widened`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseRule {
    /// The same calls in a window that is longer by a lease.
    LongerWindow,
    /// The same rate with a burst that is smaller by what the rate gives during a lease.
    SmallerBurst,
    /// The same limit: a lease ends with its window.
    EndsWithWindow,
    /// It cannot be lent: each call needs its own place in one line.
    Never,
}

/// Makes the list of algorithms from the rows, so that none is forgotten.
macro_rules! table {
    ($($kind:ident => $row:expr,)+) => {
        /// One of the algorithms, without its settings.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[expect(missing_docs, reason = "each is said by its own module")]
        pub enum AlgorithmKind {
            $($kind,)+
        }

        impl AlgorithmKind {
            /// All of them; first the one that is usual.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// What limits count by where nobody says.
            pub const USUAL: Self = Self::ALL[0];

            /// What is known of it.
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
        early: Early::GoesOn,
        lent: LeaseRule::LongerWindow,
        letter: "x",
        state_letter: "w",
        number: 6,
        build: |rate, settings| SubWindows::strict(rate, parts(settings)).map(Policy::SubWindows),
        read_state: read_sub_windows,
    },
    SlidingLog => Row {
        name: "sliding-log",
        settings: &[],
        remembers: Remembers::Calls,
        early: Early::GoesOn,
        lent: LeaseRule::LongerWindow,
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
        early: Early::GoesOn,
        lent: LeaseRule::EndsWithWindow,
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
        early: Early::GoesOn,
        lent: LeaseRule::LongerWindow,
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
        early: Early::GoesOn,
        lent: LeaseRule::LongerWindow,
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
        early: Early::GoesOn,
        lent: LeaseRule::SmallerBurst,
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
        early: Early::GoesOn,
        lent: LeaseRule::SmallerBurst,
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
        lent: LeaseRule::Never,
        letter: "l",
        state_letter: "l",
        number: 8,
        build: |rate, settings| {
            let queue = settings.queue.unwrap_or_else(|| rate.calls());
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

/// How many calls may come at once: as many as the limit where nobody says. Without any calls
/// nothing passes, whatever the burst is.
#[must_use]
pub fn burst(rate: Rate, settings: &Settings) -> u32 {
    settings.burst.unwrap_or_else(|| rate.calls().max(1))
}

fn read_sub_windows(numbers: &[u64]) -> Option<State> {
    sub_windows::State::from_numbers(numbers).map(State::SubWindows)
}

impl AlgorithmKind {
    /// Its name in files and flags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The algorithm with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether it has such a setting.
    #[must_use]
    pub fn has(self, setting: Setting) -> bool {
        self.row().settings.contains(&setting)
    }

    /// A limit by this algorithm. What is not set is usual, and what it does not have is not looked
    /// at.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] as the algorithm says.
    pub fn build(self, rate: Rate, settings: &Settings) -> Result<Policy, SettingsError> {
        (self.row().build)(rate, settings)
    }
}

impl Policy {
    /// By which algorithm it counts.
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

    /// What is known of its algorithm.
    #[must_use]
    pub const fn row(&self) -> &'static Row {
        self.kind().row()
    }

    /// What a store must offer.
    #[must_use]
    pub const fn needs(&self) -> Needs {
        match self.row().remembers {
            Remembers::Counts => Needs::AtomicAdd,
            Remembers::Calls | Remembers::Tokens | Remembers::Time => Needs::Transaction,
        }
    }

    /// Each setting of its algorithm with its value, in the order of the row.
    pub fn each_setting(&self) -> impl Iterator<Item = (Setting, u32)> + use<> {
        let settings = self.settings();
        let all = self.row().settings.iter();
        all.filter_map(move |setting| Some((*setting, settings.get(*setting)?)))
    }
}

impl State {
    /// One of the algorithms that understand it; `None` for a client who never called.
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
    fn a_limit_that_is_built_anew_from_its_settings_is_the_same() {
        for (kind, policy) in policies() {
            assert_eq!(policy.kind(), kind);
            assert_eq!(AlgorithmKind::named(kind.name()), Some(kind));
            let again = kind.build(policy.rate(), &policy.settings());
            assert_eq!(again, Ok(policy));
            // A row has all settings that the algorithm says, and no others.
            for setting in Setting::ALL {
                let is_set = policy.settings().get(setting).is_some();
                assert_eq!(is_set, kind.has(setting), "{kind:?} {setting:?}");
            }
        }
    }

    #[test]
    fn names_and_letters_tell_algorithms_apart() {
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
    fn a_state_is_read_as_it_was_written_by_an_algorithm_that_understands_it() {
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
    fn only_what_lets_calls_wait_delays_them() {
        for (kind, policy) in policies() {
            let mut state = State::New;
            let now = at("07:10:00");
            let verdicts = [(); 2].map(|()| policy.step(&mut state, now, Cost::ONE));
            let second = crate::verdict::Outcome::Admit {
                delay: crate::time::DurationUs::ZERO,
            };
            let waits = verdicts[1].outcome != second;
            assert_eq!(waits, kind.row().early == Early::Waits, "{kind:?}");
        }
    }
}
