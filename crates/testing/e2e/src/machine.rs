//! Machine of a measurement, and how busy it is.

use std::fs;

/// Describes the machine in a line.
#[must_use]
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores, load average before: {load}")
}

/// Processor time of the whole machine, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct CpuTimes {
    idle: u64,
    total: u64,
}

impl CpuTimes {
    /// Returns the times since the machine started; zero if the system does not report them.
    #[must_use]
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the first line: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(text: &str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        let fields = first.split_ascii_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
        let idle = ticks.iter().skip(3).take(2).sum();
        Self {
            idle,
            total: ticks.iter().sum(),
        }
    }

    /// Returns the idle part of the time since `before`, in percent.
    #[must_use]
    pub fn idle_since(self, before: Self) -> u64 {
        let total = self.total.saturating_sub(before.total);
        100 * self.idle.saturating_sub(before.idle) / total.max(1)
    }
}
