//! For how long may calls be spent that were charged ahead?
//!
//! A call counts in the window in which it was charged, so it has to be spent in it. That can be
//! said of fixed windows alone: they end for everybody at one moment. By any other algorithm what
//! was charged at one moment and spent at a later one would have to count at both.
//!
//! Whoever is assigned something counts its time from when the message arrives. So the time that it
//! is told ends a [`MARGIN`] before the window does: for the way of the message, and for a timer
//! that fires late.

use crate::policy::Policy;
use crate::time::{DurationUs, TimestampUs};

/// How late a message may arrive, and a timer fire, both together. Longer than either takes in a
/// process that is not stopped. It costs that part of each window; a shorter one would let calls
/// slip into the next.
pub const MARGIN: DurationUs = DurationUs::from_secs(1);

/// The longest time. After it, what is left is lost, so it is long; and for so long holds what was
/// assigned by a limit that was lowered.
pub const LONGEST: DurationUs = DurationUs::from_secs(600);

/// Most calls of one assignment: more than an Envoy lets through between two reports.
pub const CALLS_MOST: u32 = 1_000_000;

/// The shortest window out of which something can be assigned: Envoy reads whole seconds, and
/// those, with the margin, would be all of a shorter one.
pub const WINDOW_SHORTEST: DurationUs = DurationUs::from_secs(10);

/// Why nothing can be assigned out of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitError {
    /// Its windows end at no moment that all know.
    #[error("only fixed windows can be assigned ahead")]
    Algorithm,
    /// An assignment would be over before it has arrived.
    #[error(
        "a window of {window} is too short to be assigned ahead; the shortest is {WINDOW_SHORTEST}"
    )]
    Window {
        /// How long it is.
        window: DurationUs,
    },
}

/// Says whether something can be assigned out of a limit.
///
/// # Errors
///
/// [`UnfitError`] says what is in the way.
pub fn check(policy: &Policy) -> Result<(), UnfitError> {
    let window = policy.rate().window();
    if policy.begins_anew_after(TimestampUs(0)).is_none() {
        return Err(UnfitError::Algorithm);
    }
    if window < WINDOW_SHORTEST {
        return Err(UnfitError::Window { window });
    }
    Ok(())
}

/// When calls must be spent at the latest that were charged after `asked_at`, by whoever hears of
/// it at once. `full_after` is what the verdict said: how long the window of the charge still
/// takes, at a moment that was not earlier.
#[must_use]
pub fn ends_at(policy: &Policy, asked_at: TimestampUs, full_after: DurationUs) -> TimestampUs {
    let left = full_after.min(policy.rate().window());
    let left = DurationUs(left.0.saturating_sub(MARGIN.0));
    asked_at + left.min(LONGEST)
}

/// The whole seconds until then, as Envoy reads them; `None` if there are none.
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
    fn what_is_charged_is_spent_a_margin_before_its_window_ends() {
        let check = |full_after: u64, expected| {
            let ends_at = ends_at(&fixed(3_600), TimestampUs(7), DurationUs(full_after));
            assert_eq!(ends_at, TimestampUs(7 + expected), "{full_after}");
        };
        check(30_000_000, 29_000_000);
        check(1_000_000, 0);
        check(10, 0);
        check(3_000_000_000, LONGEST.0);
        // A store that says more than a window can take.
        check(u64::MAX, LONGEST.0);
    }

    #[test]
    fn a_time_is_told_in_whole_seconds_rounded_down() {
        let told = |until: u64| seconds_until(TimestampUs(5 + until), TimestampUs(5));
        let untils = [0, 999_999, 1_000_000, 1_999_999, 59_000_001];
        assert_eq!(untils.map(told), [None, None, Some(1), Some(1), Some(59)]);
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
