//! How long did a step take? For people to read; nothing is decided by it.

use std::time::{Duration, Instant};

/// Runs from when it was started.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "shown to people who wait for the build; no behaviour depends on it"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
