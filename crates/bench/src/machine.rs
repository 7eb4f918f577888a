//! Machine of a measurement.

use serde::Serialize;

/// Machine of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processor cores that this process may use.
    pub cores: usize,
    /// Load average of the last minute, before the measurement; `None` if the system does not
    /// report it.
    pub load_before: Option<f64>,
}

impl Machine {
    /// Returns the data of this machine.
    #[must_use]
    pub fn look() -> Self {
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_before: load.and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }
}
