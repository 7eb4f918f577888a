//! How a configured span becomes a timer.

use std::time::Duration;

use anteroom_room::time::DurationMs;

/// The longest time that is waited for anything: longer spans overflow timers and mean "for ever".
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A configured span as a timer takes it.
#[must_use]
pub fn wait_of(span: DurationMs) -> Duration {
    Duration::from_millis(span.0).min(WAIT_MAX)
}
