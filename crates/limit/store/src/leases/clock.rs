//! Clock of this node, the only one that this crate reads.

use std::fmt;

use crate::shared::TestTime;
use anteroom_limit::time::TimestampUs;
use rustix::time::{ClockId, clock_gettime};

/// Clock that never goes back, and goes on while the machine sleeps, as leases end meanwhile.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the time since an arbitrary start.
    fn now(&self) -> TimestampUs;
}

/// Tests may give a node the clock of its store.
impl Clock for TestTime {
    fn now(&self) -> TimestampUs {
        Self::now(self)
    }
}

/// Time since the machine booted, including sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> TimestampUs {
        let time = clock_gettime(ClockId::Boottime);
        let micros = i128::from(time.tv_sec) * 1_000_000 + i128::from(time.tv_nsec) / 1_000;
        TimestampUs(u64::try_from(micros).unwrap_or(0))
    }
}
