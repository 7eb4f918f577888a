//! What time is it at this node? The one place of this crate that reads a clock.

use std::fmt;

use crate::shared::TestTime;
use anteroom_limit::time::TimestampUs;
use rustix::time::{ClockId, clock_gettime};

/// A clock that never goes back, and never stands still while the machine sleeps: leases end
/// meanwhile.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now, from whenever on it counts.
    fn now(&self) -> TimestampUs;
}

/// In tests a node's clock may go with that of its store.
impl Clock for TestTime {
    fn now(&self) -> TimestampUs {
        Self::now(self)
    }
}

/// Time since the machine started, sleep included.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> TimestampUs {
        let time = clock_gettime(ClockId::Boottime);
        let micros = i128::from(time.tv_sec) * 1_000_000 + i128::from(time.tv_nsec) / 1_000;
        TimestampUs(u64::try_from(micros).unwrap_or(0))
    }
}
