//! On what machine was it measured?

use serde::Serialize;

/// What it was measured on.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processor cores that this process may use.
    pub cores: usize,
    /// Load average of the last minute, before anything was measured; `None` where the system does
    /// not say.
    pub load_before: Option<f64>,
}

impl Machine {
    /// Looks at this one.
    #[must_use]
    pub fn look() -> Self {
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_before: load.and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }
}
