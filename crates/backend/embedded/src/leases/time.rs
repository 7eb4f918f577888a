//! Clock of the file.

use std::fmt;
use std::sync::Arc;

use anteroom_limit::time::TimestampUs;
use anteroom_room::time::Timestamp;
use anteroom_store::Clock;

/// Clock that never falls behind the times in the file.
pub trait FileClock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present time.
    fn now(&self) -> TimestampUs;

    /// Keeps the clock at or after `at`.
    fn never_before(&self, at: TimestampUs);
}

/// Clock of rooms: it follows the wall clock slowly, and never falls behind recorded times.
pub(crate) struct RoomFileClock(pub(crate) Arc<dyn Clock>);

impl FileClock for RoomFileClock {
    fn now(&self) -> TimestampUs {
        TimestampUs(self.0.now().0.saturating_mul(1_000))
    }

    fn never_before(&self, at: TimestampUs) {
        self.0.never_before(Timestamp(at.0.div_ceil(1_000)));
    }
}

impl fmt::Debug for RoomFileClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoomFileClock({})", self.now().0)
    }
}
