//! Conversion of configured durations to timers.

use std::time::Duration;

use anteroom_room::time::DurationMs;

/// Longest timer: longer durations overflow timers and mean "forever".
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Converts a configured duration for a timer.
#[must_use]
pub fn wait_of(span: DurationMs) -> Duration {
    Duration::from_millis(span.0).min(WAIT_MAX)
}
