//! Algorithms to compare, and their settings.

use std::cmp::Reverse;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::{self, AlgorithmKind};
use anteroom_limit::settings::{self, Setting, SettingsError};
use anteroom_limit::time::DurationUs;

/// Settings of the compared limits, of all algorithms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Requests per window.
    pub rate: Rate,
    /// Parts of the window, for both kinds of sub-windows.
    pub sub_windows: u32,
    /// Burst of the token bucket and of GCRA, in requests; `None` is the limit.
    pub burst: Option<u32>,
    /// Length of the leaky bucket's queue, in requests.
    pub queue: u32,
}

impl Settings {
    /// Creates a limit of this algorithm; it ignores settings that the algorithm does not have.
    ///
    /// # Errors
    ///
    /// Returns the [`SettingsError`] of the algorithm.
    pub fn policy(&self, kind: AlgorithmKind) -> Result<Policy, SettingsError> {
        kind.build(self.rate, &self.numbers())
    }

    /// Returns the burst, by default the limit.
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

/// Returns all algorithms: windows from the coarsest to the strictest, then the others.
#[must_use]
pub fn all() -> Vec<AlgorithmKind> {
    let rank = |kind: &AlgorithmKind| {
        if kind.has(Setting::Burst) || kind.has(Setting::Queue) {
            return (1, Reverse(0));
        }
        (0, Reverse(admitted(*kind)))
    };
    let mut kinds = AlgorithmKind::ALL.to_vec();
    kinds.sort_by_key(rank);
    kinds
}

/// Returns how much a limit of a hundred requests a minute allows in the fullest window.
fn admitted(kind: AlgorithmKind) -> u64 {
    let rate = Rate::new(100, DurationUs::from_secs(60));
    let policy = rate.and_then(|rate| kind.build(rate, &settings::Settings::default()));
    policy.map_or(0, |policy| policy.window_cost_max(1))
}

/// Returns the algorithm with a limit that is never reached, to add requests without a check and to
/// read counts. Returns `None` for an algorithm without counts.
///
/// Its states are those of the limit: the rate may change at any time, and spent requests stay
/// spent.
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

    fn settings(requests: u32) -> Settings {
        Settings {
            rate: Rate::new(requests, DurationUs::from_secs(60)).unwrap(),
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
            assert!(policy.step(&mut state, now, Cost::ONE).is_allowed());
            for _ in 0..3 {
                assert!(raised.step(&mut state, now, Cost::ONE).is_allowed());
            }
            assert!(!policy.step(&mut state, now, Cost::ONE).is_allowed());
            let seen = raised.step(&mut state, now, Cost::Peek).remaining;
            assert_eq!(u32::MAX - seen, 4, "{one:?}");
        }
    }
}
