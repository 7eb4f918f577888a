//! Rate of a limit: requests in a window.

use crate::settings::SettingsError;
use crate::time::DurationUs;

/// Shortest window. Below a second, clocks of nodes differ by a large part of a window.
pub const WINDOW_SHORTEST: DurationUs = DurationUs::from_secs(1);
/// Longest window: a leap year. Requests times microseconds then fit into 77 bits.
pub const WINDOW_LONGEST: DurationUs = DurationUs::from_secs(366 * 86_400);

/// Number of requests in each window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    calls: u32,
    window: DurationUs,
}

impl Rate {
    /// Creates a rate of `calls` requests in each `window`. With zero, every request is over the
    /// limit.
    ///
    /// # Errors
    ///
    /// [`SettingsError::WindowOutOfRange`] below [`WINDOW_SHORTEST`] and above [`WINDOW_LONGEST`].
    pub const fn new(calls: u32, window: DurationUs) -> Result<Self, SettingsError> {
        if window.0 < WINDOW_SHORTEST.0 || window.0 > WINDOW_LONGEST.0 {
            return Err(SettingsError::WindowOutOfRange {
                window,
                shortest: WINDOW_SHORTEST,
                longest: WINDOW_LONGEST,
            });
        }
        Ok(Self { calls, window })
    }

    /// Returns a rate with the same requests in a window that is longer by at least `by` and
    /// divides into `parts` equal parts. It may be longer than [`WINDOW_LONGEST`].
    pub(crate) const fn with_longer_window(self, by: DurationUs, parts: u32) -> Self {
        let least = self.window.0.saturating_add(by.0);
        let window = DurationUs(least.div_ceil(parts as u64).saturating_mul(parts as u64));
        Self { window, ..self }
    }

    /// Returns the number of requests.
    #[must_use]
    pub const fn requests(self) -> u32 {
        self.calls
    }

    /// Returns the window.
    #[must_use]
    pub const fn window(self) -> DurationUs {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_from_a_second_to_a_leap_year() {
        for window in [1_000_000, 60_000_000, 366 * 86_400_000_000] {
            let rate = Rate::new(0, DurationUs(window)).unwrap();
            assert_eq!((rate.requests(), rate.window().0), (0, window));
        }
        for window in [0, 999_999, 366 * 86_400_000_000 + 1, u64::MAX] {
            let window = DurationUs(window);
            let error = SettingsError::WindowOutOfRange {
                window,
                shortest: WINDOW_SHORTEST,
                longest: WINDOW_LONGEST,
            };
            assert_eq!(Rate::new(1, window), Err(error));
        }
    }
}
