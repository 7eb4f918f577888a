//! Policy that counts a limit of a file: its algorithm with all settings.
//!
//! Fixed windows start at the Unix epoch, like those of the reference service.

use crate::config::{AlgorithmChoice, CannotKeep, Unit};
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::settings::{Settings, SettingsError};
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::shared::SharedCounts;

/// Longest delay by a leaky bucket; the response comes so much later. Delayed requests take memory,
/// and Envoy waits 20 ms by default.
pub(crate) const DELAY_MAX: DurationUs = DurationUs::from_secs(5);

/// Returns the policy of a limit.
pub(crate) fn policy(
    algorithm: AlgorithmChoice,
    requests: u32,
    unit: Unit,
) -> Result<Policy, SettingsError> {
    let rate = Rate::new(requests, DurationUs::from_secs(unit.seconds()))?;
    if requests == 0 {
        // A burst would admit requests although the limit is zero.
        return Ok(Policy::FixedWindow(FixedWindow::new(rate)));
    }
    let AlgorithmChoice { kind, settings } = algorithm;
    let settings = Settings {
        // Requests are delayed only if the file asks for it.
        queue: settings.queue.or(Some(0)),
        ..settings
    };
    kind.build(rate, &settings)
}

/// Checks that a limit can be counted, and kept in the store if there is one.
pub(crate) fn check(
    (algorithm, requests, unit): (AlgorithmChoice, u32, Unit),
    store: Option<&dyn SharedCounts>,
) -> Result<(), CannotKeep> {
    let policy = policy(algorithm, requests, unit).map_err(|error| CannotKeep {
        key: key_of(error),
        message: error.to_string(),
    })?;
    if let Some(queue) = policy.settings().queue {
        let wait = DurationUs::from_secs(unit.seconds()).times(queue.into());
        let longest = DELAY_MAX.times(requests.into());
        if wait > longest {
            let message =
                format!("its queue takes longer than {DELAY_MAX} to drain, the longest delay");
            return Err(CannotKeep {
                key: "burst",
                message,
            });
        }
    }
    let Some(store) = store else { return Ok(()) };
    store
        .check(LIMIT_NAME, &policy)
        .map_err(|error| CannotKeep {
            key: "algorithm",
            message: error.to_string(),
        })
}

/// Name of all limits of the service in a store. The key tells them apart.
pub(crate) const LIMIT_NAME: &str = "envoy";

const fn key_of(error: SettingsError) -> &'static str {
    match error {
        SettingsError::PartsOutOfRange { .. } | SettingsError::PartsUneven { .. } => "sub_windows",
        SettingsError::BurstZero => "burst",
        SettingsError::InitialBurstBelowCapacity { .. } => "initial_burst",
        _ => "algorithm",
    }
}

/// Returns what tells limits apart that count the same thing: a number for the algorithm, the
/// seconds of its window, and its parts.
pub(crate) fn kind_of(policy: &Policy) -> [u8; 13] {
    let number = policy.row().number;
    let parts = policy.settings().sub_windows.unwrap_or(0);
    let mut kind = [0; 13];
    kind[0] = number;
    kind[1..9].copy_from_slice(&policy.rate().window().secs_ceil().to_le_bytes());
    kind[9..].copy_from_slice(&parts.to_le_bytes());
    kind
}

#[cfg(test)]
mod tests {
    use anteroom_limit::registry::AlgorithmKind;

    use super::*;

    fn by(kind: AlgorithmKind) -> AlgorithmChoice {
        let settings = Settings::default();
        AlgorithmChoice { kind, settings }
    }

    fn message(
        algorithm: AlgorithmChoice,
        requests: u32,
        unit: Unit,
    ) -> Option<(&'static str, String)> {
        let unfit = check((algorithm, requests, unit), None).err()?;
        Some((unfit.key, unfit.message))
    }

    #[test]
    fn a_limit_without_settings_has_those_of_its_number_of_requests() {
        let of = |kind| policy(by(kind), 60, Unit::Minute).unwrap();
        let bucket = of(AlgorithmKind::TokenBucket);
        let Policy::TokenBucket(bucket) = bucket else {
            panic!("{bucket:?}");
        };
        assert_eq!((bucket.capacity(), bucket.initial_burst()), (60, 60));
        let Policy::Gcra(gcra) = of(AlgorithmKind::Gcra) else {
            panic!("no gcra");
        };
        assert_eq!(gcra.burst(), 60);
        let strict = of(AlgorithmKind::SubWindowsStrict);
        assert_eq!(strict.kind(), AlgorithmKind::SubWindowsStrict);
        assert!(matches!(strict, Policy::SubWindows(strict) if strict.parts() == 10));
        // Requests are delayed only if the file asks for it.
        let leaky = of(AlgorithmKind::LeakyBucket);
        assert!(matches!(leaky, Policy::LeakyBucket(leaky) if leaky.queue() == 0));
    }

    #[test]
    fn a_limit_of_zero_admits_nothing() {
        let mut gcra = by(AlgorithmKind::Gcra);
        gcra.settings.burst = Some(5);
        for algorithm in [gcra, by(AlgorithmKind::SlidingLog)] {
            let policy = policy(algorithm, 0, Unit::Second).unwrap();
            assert!(matches!(policy, Policy::FixedWindow(_)), "{policy:?}");
        }
    }

    #[test]
    fn a_limit_that_cannot_be_counted_names_the_setting_to_blame() {
        let mut seven = by(AlgorithmKind::SubWindows);
        seven.settings.sub_windows = Some(7);
        let uneven = message(seven, 1, Unit::Second).unwrap();
        assert_eq!(uneven.0, "sub_windows");
        let long = message(by(AlgorithmKind::SlidingLog), u32::MAX, Unit::Second).unwrap();
        assert_eq!(long.0, "algorithm");
        assert!(long.1.contains("exceeds the maximum"), "{long:?}");
        let leaky = |queue| {
            let mut leaky = by(AlgorithmKind::LeakyBucket);
            leaky.settings.queue = Some(queue);
            leaky
        };
        assert_eq!(message(leaky(50), 10, Unit::Second), None);
        assert_eq!(message(leaky(51), 10, Unit::Second).unwrap().0, "burst");
    }

    #[test]
    fn limits_that_count_differently_have_different_kinds() {
        let of = |algorithm, requests, unit| kind_of(&policy(algorithm, requests, unit).unwrap());
        let fixed = of(by(AlgorithmKind::FixedWindow), 5, Unit::Minute);
        assert_eq!(fixed, of(by(AlgorithmKind::FixedWindow), 6, Unit::Minute));
        assert_ne!(fixed, of(by(AlgorithmKind::FixedWindow), 5, Unit::Hour));
        assert_ne!(fixed, of(by(AlgorithmKind::SlidingWindow), 5, Unit::Minute));
        let parts = |parts| {
            let mut sub = by(AlgorithmKind::SubWindows);
            sub.settings.sub_windows = Some(parts);
            sub
        };
        assert_ne!(of(parts(2), 5, Unit::Day), of(parts(3), 5, Unit::Day));
    }
}
