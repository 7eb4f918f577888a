//! Clock that stores count by, and the tolerated clock skew between nodes.

use std::sync::Arc;

use anteroom_limit::time::{DurationUs, TimestampUs};

/// Largest clock skew between two nodes at which a limit still holds, for stores whose nodes name
/// windows by their own clocks. NTP keeps clocks within some milliseconds; a second leaves room for
/// a node where it has just started. With more, each node would read windows that no request falls
/// into.
pub const CLOCKS_APART_MAX: DurationUs = DurationUs::from_secs(1);

/// Function that reads the node's own clock.
pub type Now = Arc<dyn Fn() -> TimestampUs + Send + Sync>;
