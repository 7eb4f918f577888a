//! Clock of a demo.
//!
//! It reads the wall clock once at the start, then the monotonic clock: a change of the wall clock
//! during a demo would make seats end at once or never. It does not follow a slewed clock, which
//! does not matter in so short a time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anteroom_room::time::Timestamp;

/// Milliseconds since the Unix epoch that never go back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    since_epoch: Duration,
}

impl Clock {
    /// Starts at the time of the wall clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "the demo's only reader of clocks; checker and visitors get its readings"
    )]
    pub(crate) fn start() -> Self {
        // A wall clock before 1970 is wrong anyway.
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started: Instant::now(),
            since_epoch,
        }
    }

    /// Returns the time. Rounded down once, at the end: to round both parts would put this clock up
    /// to 2 ms behind the gateway's, and a seat that was granted again in time would count twice.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(whole_millis(self.since_epoch + self.started.elapsed()))
    }
}

/// Returns the whole milliseconds of a duration, saturating.
pub(crate) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
