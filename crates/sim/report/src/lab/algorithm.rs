//! Which algorithms are there, what are they called, and which settings does each of them take?

use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::settings::SettingsError;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::sub_windows_strict::SubWindowsStrict;
use anteroom_limit::token_bucket::TokenBucket;

/// One of the algorithms, by the word that the config file has for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    missing_docs,
    reason = "each is said by its own module in anteroom-limit"
)]
pub enum Algorithm {
    FixedWindow,
    SlidingWindow,
    SubWindows,
    SubWindowsStrict,
    SlidingLog,
    TokenBucket,
    Gcra,
    LeakyBucket,
}

/// What limits have beside their rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// How many calls in how long.
    pub rate: Rate,
    /// Parts of the window, for both kinds of sub-windows.
    pub sub_windows: u32,
    /// How many calls at once, for the token bucket and the generic cell rate. `None` is as many as
    /// the limit.
    pub burst: Option<u32>,
    /// How many calls may wait, for the leaky bucket.
    pub queue: u32,
}

impl Settings {
    /// How many calls at once, where nobody says: as many as the limit, and one where that is none,
    /// for a bucket of nothing is no bucket.
    #[must_use]
    pub fn burst_or_limit(&self) -> u32 {
        self.burst.unwrap_or_else(|| self.rate.calls().max(1))
    }
}

impl Algorithm {
    /// All of them: windows from the coarsest to the strictest, then the others.
    pub const ALL: [Self; 8] = [
        Self::FixedWindow,
        Self::SlidingWindow,
        Self::SubWindows,
        Self::SubWindowsStrict,
        Self::SlidingLog,
        Self::TokenBucket,
        Self::Gcra,
        Self::LeakyBucket,
    ];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::FixedWindow => "fixed-window",
            Self::SlidingWindow => "sliding-window",
            Self::SubWindows => "sub-windows",
            Self::SubWindowsStrict => "sub-windows-strict",
            Self::SlidingLog => "sliding-log",
            Self::TokenBucket => "token-bucket",
            Self::Gcra => "gcra",
            Self::LeakyBucket => "leaky-bucket",
        }
    }

    /// The one with this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// This algorithm with these settings; those that it does not have are not looked at.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] as the algorithm says.
    pub fn policy(self, settings: &Settings) -> Result<Policy, SettingsError> {
        let rate = settings.rate;
        let burst = settings.burst_or_limit();
        Ok(match self {
            Self::FixedWindow => Policy::FixedWindow(FixedWindow::new(rate)),
            Self::SlidingWindow => Policy::SlidingWindow(SlidingWindow::new(rate)),
            Self::SubWindows => Policy::SubWindows(SubWindows::new(rate, settings.sub_windows)?),
            Self::SubWindowsStrict => {
                Policy::SubWindowsStrict(SubWindowsStrict::new(rate, settings.sub_windows)?)
            }
            Self::SlidingLog => Policy::SlidingLog(SlidingLog::new(rate)?),
            Self::TokenBucket => Policy::TokenBucket(TokenBucket::new(rate, burst, burst)?),
            Self::Gcra => Policy::Gcra(Gcra::new(rate, burst)?),
            Self::LeakyBucket => Policy::LeakyBucket(LeakyBucket::new(rate, settings.queue)),
        })
    }
}

/// The same algorithm with a limit that nobody reaches, where it keeps counts: to add what must be
/// added, and to see what is counted. `None` where it keeps something else.
///
/// Its states are those of the limit: calls may change at any time, and what was spent stays spent.
pub(crate) fn raised(policy: &Policy) -> Option<Policy> {
    let rate = Rate::new(u32::MAX, policy.rate().window()).ok()?;
    Some(match policy {
        Policy::FixedWindow(_) => Policy::FixedWindow(FixedWindow::new(rate)),
        Policy::SlidingWindow(_) => Policy::SlidingWindow(SlidingWindow::new(rate)),
        Policy::SubWindows(sub) => Policy::SubWindows(SubWindows::new(rate, sub.parts()).ok()?),
        Policy::SubWindowsStrict(sub) => {
            Policy::SubWindowsStrict(SubWindowsStrict::new(rate, sub.parts()).ok()?)
        }
        Policy::SlidingLog(_)
        | Policy::TokenBucket(_)
        | Policy::Gcra(_)
        | Policy::LeakyBucket(_) => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use anteroom_limit::algorithm::Algorithm as _;
    use anteroom_limit::cost::Cost;
    use anteroom_limit::policy::State;
    use anteroom_limit::time::{MicroSpan, Micros};

    use super::*;

    fn settings(calls: u32) -> Settings {
        Settings {
            rate: Rate::new(calls, MicroSpan::from_secs(60)).unwrap(),
            sub_windows: 4,
            burst: None,
            queue: 0,
        }
    }

    #[test]
    fn each_word_finds_its_algorithm() {
        for one in Algorithm::ALL {
            assert_eq!(Algorithm::of_word(one.word()), Some(one));
        }
        assert_eq!(Algorithm::of_word("fixed"), None);
    }

    #[test]
    fn a_raised_limit_adds_to_a_state_and_full_stays_full() {
        for one in Algorithm::ALL {
            let policy = one.policy(&settings(2)).unwrap();
            let Some(raised) = raised(&policy) else {
                assert_eq!(policy.counters(), None);
                continue;
            };
            let mut state = State::default();
            let now = Micros(1_000_000);
            assert!(policy.step(&mut state, now, Cost::ONE).is_admitted());
            for _ in 0..3 {
                assert!(raised.step(&mut state, now, Cost::ONE).is_admitted());
            }
            assert!(!policy.step(&mut state, now, Cost::ONE).is_admitted());
            let seen = raised.step(&mut state, now, Cost::Peek).remaining;
            assert_eq!(u32::MAX - seen, 4, "{one:?}");
        }
    }
}
