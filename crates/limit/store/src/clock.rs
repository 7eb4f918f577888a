//! The clock that backends count by, and how far the clocks of two nodes may be apart.

use std::sync::Arc;

use anteroom_limit::time::{DurationUs, TimestampUs};

/// How far the clocks of two nodes may be apart so that a limit holds where nodes name windows by
/// their own clocks. Clocks that NTP keeps are within some milliseconds; a second is what is left
/// where it has just begun to. More would make each node look at windows that nobody is in.
pub const CLOCKS_APART_MAX: DurationUs = DurationUs::from_secs(1);

/// Reads a node's own clock.
pub type Now = Arc<dyn Fn() -> TimestampUs + Send + Sync>;
