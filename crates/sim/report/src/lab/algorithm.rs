//! Which algorithms are compared, and with which settings?

use std::cmp::Reverse;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::{self, AlgorithmKind};
use anteroom_limit::settings::{self, Setting, SettingsError};
use anteroom_limit::time::DurationUs;

/// What limits have, of all algorithms that are compared.
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
    /// A limit by this algorithm; settings that it does not have are not looked at.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] as the algorithm says.
    pub fn policy(&self, kind: AlgorithmKind) -> Result<Policy, SettingsError> {
        kind.build(self.rate, &self.numbers())
    }

    /// How many calls at once, also where nobody says.
    #[must_use]
    pub fn burst_or_limit(&self) -> u32 {
        registry::burst(self.rate, &self.numbers())
    }

    fn numbers(&self) -> settings::Settings {
        settings::Settings {
            sub_windows: Some(self.sub_windows),
            burst: self.burst,
            initial_burst: None,
            queue: Some(self.queue),
        }
    }
}

/// All algorithms: windows from the coarsest to the strictest, then the others.
#[must_use]
pub fn all() -> Vec<AlgorithmKind> {
    let place = |kind: &AlgorithmKind| {
        if kind.has(Setting::Burst) || kind.has(Setting::Queue) {
            return (1, Reverse(0));
        }
        (0, Reverse(admitted(*kind)))
    };
    let mut kinds = AlgorithmKind::ALL.to_vec();
    kinds.sort_by_key(place);
    kinds
}

/// How much a limit of a hundred calls a minute admits in some window.
fn admitted(kind: AlgorithmKind) -> u64 {
    let rate = Rate::new(100, DurationUs::from_secs(60));
    let policy = rate.and_then(|rate| kind.build(rate, &settings::Settings::default()));
    policy.map_or(0, |policy| policy.most_in_any_window(1))
}

/// The same algorithm with a limit that nobody reaches, where it keeps counts: to add what must be
/// added, and to see what is counted. `None` where it keeps something else.
///
/// Its states are those of the limit: calls may change at any time, and what was spent stays spent.
pub(crate) fn raised(policy: &Policy) -> Option<Policy> {
    policy.counters()?;
    let rate = Rate::new(u32::MAX, policy.rate().window()).ok()?;
    policy.kind().build(rate, &policy.settings()).ok()
}

#[cfg(test)]
mod tests {
    use anteroom_limit::cost::Cost;
    use anteroom_limit::policy::State;
    use anteroom_limit::time::TimestampUs;

    use super::*;

    fn settings(calls: u32) -> Settings {
        Settings {
            rate: Rate::new(calls, DurationUs::from_secs(60)).unwrap(),
            sub_windows: 4,
            burst: None,
            queue: 0,
        }
    }

    #[test]
    fn windows_come_first_from_the_coarsest_to_the_strictest() {
        use AlgorithmKind::{
            FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow, SubWindows,
            SubWindowsStrict, TokenBucket,
        };
        let windows = [
            FixedWindow,
            SlidingWindow,
            SubWindows,
            SubWindowsStrict,
            SlidingLog,
        ];
        assert_eq!(
            all(),
            [&windows[..], &[TokenBucket, Gcra, LeakyBucket]].concat()
        );
    }

    #[test]
    fn a_raised_limit_adds_to_a_state_and_full_stays_full() {
        for one in all() {
            let policy = settings(2).policy(one).unwrap();
            let Some(raised) = raised(&policy) else {
                assert_eq!(policy.counters(), None);
                continue;
            };
            let mut state = State::default();
            let now = TimestampUs(1_000_000);
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
