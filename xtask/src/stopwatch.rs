//! Duration of a step, for people to read; no behaviour depends on it.

use std::time::{Duration, Instant};

/// Time since its start.
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
