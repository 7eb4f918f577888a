//! Cost of a piece of work: wall time, CPU time of this process, and its peak memory.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Cost of the work until now.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cost {
    /// Wall time in seconds.
    pub(crate) wall_s: f64,
    /// CPU time of all threads in seconds, in user and kernel mode.
    pub(crate) cpu_s: f64,
}

/// Measurement that starts before the work.
pub(crate) struct Meter {
    wall: Instant,
    cpu: Duration,
}

impl Meter {
    #[expect(
        clippy::disallowed_methods,
        reason = "it measures the simulator, not what is simulated"
    )]
    pub(crate) fn start() -> Self {
        Self {
            wall: Instant::now(),
            cpu: cpu_time(),
        }
    }

    /// Returns the cost since the start.
    pub(crate) fn cost(&self) -> Cost {
        Cost {
            wall_s: self.wall.elapsed().as_secs_f64(),
            cpu_s: cpu_time().saturating_sub(self.cpu).as_secs_f64(),
        }
    }
}

/// Returns the CPU time of this process; unlike wall time it does not count other processes.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime)
        .try_into()
        .expect("CPU time is never negative")
}

/// Returns the peak memory of this process in bytes; `None` where the system does not report it.
pub(crate) fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
