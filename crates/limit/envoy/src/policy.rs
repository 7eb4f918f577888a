//! Which algorithm, with which settings, counts a limit of a file?
//!
//! Windows of the fixed kind begin with the Unix epoch, as those of the reference service do.

use crate::config::{AlgorithmChoice, CannotKeep, Unit};
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
use anteroom_limit::time::MicroSpan;
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_limit_store::shared::SharedCounts;

/// Parts of a window where the file names none; the same as in `[[limit]]`.
const SUB_WINDOWS: u32 = 10;

/// For how long a call may stand in the line of a leaky bucket: its answer comes so much later.
/// Calls that wait are held in memory, and Envoy waits 20 ms if it is not told otherwise.
pub(crate) const HELD_MAX: MicroSpan = MicroSpan::from_secs(5);

/// The settings that count a limit.
pub(crate) fn policy(
    algorithm: AlgorithmChoice,
    requests: u32,
    unit: Unit,
) -> Result<Policy, SettingsError> {
    let rate = Rate::new(requests, MicroSpan::from_secs(unit.seconds()))?;
    if requests == 0 {
        // No burst lets anything through where nothing is allowed.
        return Ok(Policy::FixedWindow(FixedWindow::new(rate)));
    }
    Ok(match algorithm {
        AlgorithmChoice::FixedWindow => Policy::FixedWindow(FixedWindow::new(rate)),
        AlgorithmChoice::SlidingWindow => Policy::SlidingWindow(SlidingWindow::new(rate)),
        AlgorithmChoice::SlidingLog => Policy::SlidingLog(SlidingLog::new(rate)?),
        AlgorithmChoice::TokenBucket {
            burst,
            initial_burst,
        } => {
            let burst = burst.unwrap_or(requests);
            let initial_burst = initial_burst.unwrap_or(burst);
            Policy::TokenBucket(TokenBucket::new(rate, burst, initial_burst)?)
        }
        AlgorithmChoice::Gcra { burst } => {
            Policy::Gcra(Gcra::new(rate, burst.unwrap_or(requests))?)
        }
        AlgorithmChoice::SubWindows { sub_windows } => {
            Policy::SubWindows(SubWindows::new(rate, sub_windows.unwrap_or(SUB_WINDOWS))?)
        }
        AlgorithmChoice::SubWindowsStrict { sub_windows } => {
            let parts = sub_windows.unwrap_or(SUB_WINDOWS);
            Policy::SubWindowsStrict(SubWindowsStrict::new(rate, parts)?)
        }
        AlgorithmChoice::LeakyBucket { burst } => {
            Policy::LeakyBucket(LeakyBucket::new(rate, burst.unwrap_or(0)))
        }
    })
}

/// Says whether a limit can be counted, and kept in the store if there is one.
pub(crate) fn check(
    (algorithm, requests, unit): (AlgorithmChoice, u32, Unit),
    store: Option<&dyn SharedCounts>,
) -> Result<(), CannotKeep> {
    let policy = policy(algorithm, requests, unit).map_err(|error| CannotKeep {
        key: key_of(error),
        said: error.to_string(),
    })?;
    if let Policy::LeakyBucket(bucket) = &policy {
        let wait = MicroSpan::from_secs(unit.seconds()).times(bucket.queue().into());
        let longest = HELD_MAX.times(requests.into());
        if wait > longest {
            let said = format!(
                "its line would take longer than {HELD_MAX}, and nobody is held for so long"
            );
            return Err(CannotKeep { key: "burst", said });
        }
    }
    let Some(store) = store else { return Ok(()) };
    store
        .check(LIMIT_NAME, &policy)
        .map_err(|error| CannotKeep {
            key: "algorithm",
            said: error.to_string(),
        })
}

/// What all limits of the service are called in a store. Which one it is stands in the key.
pub(crate) const LIMIT_NAME: &str = "envoy";

const fn key_of(error: SettingsError) -> &'static str {
    match error {
        SettingsError::PartsOutOfRange { .. } | SettingsError::PartsUneven { .. } => "sub_windows",
        SettingsError::BurstZero => "burst",
        SettingsError::InitialBurstBelowCapacity { .. } => "initial_burst",
        _ => "algorithm",
    }
}

/// What tells limits apart that count the same thing: a number for the algorithm, the seconds of
/// its window, and its parts. Numbers of algorithms are kept in stores: none ever gets another
/// meaning.
pub(crate) fn kind_of(policy: &Policy) -> [u8; 13] {
    let (number, parts): (u8, u32) = match policy {
        Policy::FixedWindow(_) => (1, 0),
        Policy::SlidingWindow(_) => (2, 0),
        Policy::SlidingLog(_) => (3, 0),
        Policy::TokenBucket(_) => (4, 0),
        Policy::Gcra(_) => (5, 0),
        Policy::SubWindows(algorithm) => (6, algorithm.parts()),
        // Both kinds of sub-windows understand each other's counts.
        Policy::SubWindowsStrict(algorithm) => (6, algorithm.parts()),
        Policy::LeakyBucket(_) => (8, 0),
    };
    let mut kind = [0; 13];
    kind[0] = number;
    kind[1..9].copy_from_slice(&policy.rate().window().secs_ceil().to_le_bytes());
    kind[9..].copy_from_slice(&parts.to_le_bytes());
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(
        algorithm: AlgorithmChoice,
        requests: u32,
        unit: Unit,
    ) -> Option<(&'static str, String)> {
        let unfit = check((algorithm, requests, unit), None).err()?;
        Some((unfit.key, unfit.said))
    }

    #[test]
    fn a_limit_without_settings_has_those_of_its_number_of_requests() {
        let (burst, initial_burst, sub_windows) = (None, None, None);
        let of = |algorithm| policy(algorithm, 60, Unit::Minute).unwrap();
        let bucket = of(AlgorithmChoice::TokenBucket {
            burst,
            initial_burst,
        });
        let Policy::TokenBucket(bucket) = bucket else {
            panic!("{bucket:?}");
        };
        assert_eq!((bucket.capacity(), bucket.initial_burst()), (60, 60));
        let Policy::Gcra(gcra) = of(AlgorithmChoice::Gcra { burst }) else {
            panic!("no gcra");
        };
        assert_eq!(gcra.burst(), 60);
        let parts = of(AlgorithmChoice::SubWindowsStrict { sub_windows });
        assert!(matches!(parts, Policy::SubWindowsStrict(parts) if parts.parts() == 10));
    }

    #[test]
    fn nothing_is_let_through_where_nothing_is_allowed() {
        let burst = Some(5);
        for algorithm in [AlgorithmChoice::Gcra { burst }, AlgorithmChoice::SlidingLog] {
            let policy = policy(algorithm, 0, Unit::Second).unwrap();
            assert!(matches!(policy, Policy::FixedWindow(_)), "{policy:?}");
        }
    }

    #[test]
    fn a_call_that_cannot_be_counted_names_the_setting_to_blame() {
        let sub_windows = Some(7);
        let uneven = said(AlgorithmChoice::SubWindows { sub_windows }, 1, Unit::Second).unwrap();
        assert_eq!(uneven.0, "sub_windows");
        let long = said(AlgorithmChoice::SlidingLog, u32::MAX, Unit::Second).unwrap();
        assert_eq!(long.0, "algorithm");
        assert!(long.1.contains("longer than"), "{long:?}");
        let leaky = |burst| AlgorithmChoice::LeakyBucket { burst: Some(burst) };
        assert_eq!(said(leaky(50), 10, Unit::Second), None);
        assert_eq!(said(leaky(51), 10, Unit::Second).unwrap().0, "burst");
    }

    #[test]
    fn limits_that_count_otherwise_have_other_kinds() {
        let of = |algorithm, requests, unit| kind_of(&policy(algorithm, requests, unit).unwrap());
        let fixed = of(AlgorithmChoice::FixedWindow, 5, Unit::Minute);
        assert_eq!(fixed, of(AlgorithmChoice::FixedWindow, 6, Unit::Minute));
        assert_ne!(fixed, of(AlgorithmChoice::FixedWindow, 5, Unit::Hour));
        assert_ne!(fixed, of(AlgorithmChoice::SlidingWindow, 5, Unit::Minute));
        let parts = |parts| AlgorithmChoice::SubWindows {
            sub_windows: Some(parts),
        };
        assert_ne!(of(parts(2), 5, Unit::Day), of(parts(3), 5, Unit::Day));
    }
}
