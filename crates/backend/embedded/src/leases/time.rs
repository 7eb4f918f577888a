//! What time is it by the file's clock?

use std::fmt;
use std::sync::Arc;

use anteroom_limit::time::TimestampUs;
use anteroom_room::time::Timestamp;
use anteroom_store::Clock;

/// A clock that goes on where the file stopped.
pub trait FileClock: fmt::Debug + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> TimestampUs;

    /// From now on it is at least this late.
    fn never_before(&self, at: TimestampUs);
}

/// The clock of rooms: the wall clock, approached slowly, and never behind what was written down.
pub(crate) struct OfRooms(pub(crate) Arc<dyn Clock>);

impl FileClock for OfRooms {
    fn now(&self) -> TimestampUs {
        TimestampUs(self.0.now().0.saturating_mul(1_000))
    }

    fn never_before(&self, at: TimestampUs) {
        self.0.never_before(Timestamp(at.0.div_ceil(1_000)));
    }
}

impl fmt::Debug for OfRooms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OfRooms({})", self.now().0)
    }
}
