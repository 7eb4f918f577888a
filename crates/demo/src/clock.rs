//! What time is it, for everybody who takes part in a demo?
//!
//! One reading of the wall clock at the start, then the monotonic clock: a wall clock that is set
//! while the demo runs would make seats end at once or never. It does not follow a slewed clock;
//! a demo is too short for that to matter.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anteroom_room::time::Timestamp;

/// Milliseconds since the Unix epoch that never go back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    since_epoch: Duration,
}

impl Clock {
    /// Starts at the wall clock's time.
    #[expect(
        clippy::disallowed_methods,
        reason = "the demo's only reader of clocks; judge and crowd take what it read"
    )]
    pub(crate) fn start() -> Self {
        // A wall clock before 1970 is as good as one at 1970: both are wrong.
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started: Instant::now(),
            since_epoch,
        }
    }

    /// The time now. Rounded down once, at the end: rounding both parts would put this clock up to
    /// 2 ms behind the gateway's, and a seat that was given on in time would be counted twice.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(whole_millis(self.since_epoch + self.started.elapsed()))
    }
}

/// Whole milliseconds of a duration, saturating.
pub(crate) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
