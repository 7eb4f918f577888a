//! Time for which requests taken ahead may be spent.
//!
//! A request counts in the window in which it was taken, so it has to be spent there. That works
//! for fixed windows only, because they end for all members at the same time. With any other
//! algorithm, a request taken at one time and spent later would have to count at both.
//!
//! A member counts the time of an assignment from when the message arrives. So an assignment ends a
//! [`MARGIN`] before its window, to allow for slow messages and late timers.

use crate::policy::Policy;
use crate::time::{DurationUs, TimestampUs};

/// Allowance for a late message and a late timer together. It is longer than both in a process that
/// is not stopped. It costs that part of each window; if it is too short, requests slip into the
/// next window.
pub const MARGIN: DurationUs = DurationUs::from_secs(1);

/// Longest assignment. It is long, because what is left at its end is lost. Assignments of a limit
/// that was lowered stay valid for this long.
pub const LONGEST: DurationUs = DurationUs::from_secs(600);

/// Largest assignment: more than an Envoy allows between two reports.
pub const CALLS_MOST: u32 = 1_000_000;

/// Shortest window for assignments. Envoy reads whole seconds; with the margin, they would fill a
/// shorter one.
pub const WINDOW_SHORTEST: DurationUs = DurationUs::from_secs(10);

/// Error of a limit that cannot be assigned ahead.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitError {
    /// The windows of the algorithm do not end at the same time for all members.
    #[error("only fixed windows can be assigned ahead")]
    Algorithm,
    /// An assignment would end before it arrives.
    #[error(
        "a window of {window} is too short to be assigned ahead; the shortest is {WINDOW_SHORTEST}"
    )]
    Window {
        /// Length of the window.
        window: DurationUs,
    },
}

/// Checks that a limit can be assigned ahead.
///
/// # Errors
///
/// [`UnfitError`] if the limit has another algorithm or too short a window.
pub fn check(policy: &Policy) -> Result<(), UnfitError> {
    let window = policy.rate().window();
    if policy.resets_after(TimestampUs(0)).is_none() {
        return Err(UnfitError::Algorithm);
    }
    if window < WINDOW_SHORTEST {
        return Err(UnfitError::Window { window });
    }
    Ok(())
}

/// Returns the latest time at which requests may be spent that were taken after `sent_at`, if the
/// message arrives at once. `full_after` is the rest of the window by the verdict, as of `sent_at`
/// or later.
#[must_use]
pub fn ends_at(policy: &Policy, sent_at: TimestampUs, full_after: DurationUs) -> TimestampUs {
    let left = full_after.min(policy.rate().window());
    let left = DurationUs(left.0.saturating_sub(MARGIN.0));
    sent_at + left.min(LONGEST)
}

/// Returns the whole seconds until `ends_at`, as Envoy reads them; `None` if there are none.
#[must_use]
pub fn seconds_until(ends_at: TimestampUs, now: TimestampUs) -> Option<u32> {
    let seconds = ends_at.since(now).0 / 1_000_000;
    u32::try_from(seconds).ok().filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use crate::fixed_window::FixedWindow;
    use crate::gcra::Gcra;
    use crate::rate::Rate;

    use super::*;

    fn fixed(seconds: u64) -> Policy {
        let rate = Rate::new(10, DurationUs::from_secs(seconds)).unwrap();
        Policy::FixedWindow(FixedWindow::new(rate))
    }

    #[test]
    fn an_assignment_ends_a_margin_before_its_window() {
        let check = |full_after: u64, expected| {
            let ends_at = ends_at(&fixed(3_600), TimestampUs(7), DurationUs(full_after));
            assert_eq!(ends_at, TimestampUs(7 + expected), "{full_after}");
        };
        check(30_000_000, 29_000_000);
        check(1_000_000, 0);
        check(10, 0);
        check(3_000_000_000, LONGEST.0);
        // A store that reports more than a whole window.
        check(u64::MAX, LONGEST.0);
    }

    #[test]
    fn seconds_are_whole_and_rounded_down() {
        let seconds_for = |until: u64| seconds_until(TimestampUs(5 + until), TimestampUs(5));
        let untils = [0, 999_999, 1_000_000, 1_999_999, 59_000_001];
        assert_eq!(
            untils.map(seconds_for),
            [None, None, Some(1), Some(1), Some(59)]
        );
        assert_eq!(seconds_until(TimestampUs(4), TimestampUs(5)), None);
    }

    #[test]
    fn fixed_windows_that_are_long_enough_can_be_assigned() {
        assert_eq!(check(&fixed(60)), Ok(()));
        let window = DurationUs::from_secs(1);
        assert_eq!(check(&fixed(1)), Err(UnfitError::Window { window }));
        let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
        let gcra = Policy::Gcra(Gcra::new(rate, 5).unwrap());
        assert_eq!(check(&gcra), Err(UnfitError::Algorithm));
    }
}
