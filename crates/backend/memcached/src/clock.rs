//! What time is it at a node, and how far may the clocks of two be apart?

use std::sync::Arc;

use anteroom_limit::time::{MicroSpan, Micros};

/// How far the clocks of two nodes may be apart so that a limit holds. Clocks that are kept by NTP
/// are within some milliseconds; a second is what is left where it has just begun to. More would
/// make each node look at stretches of time that nobody is in.
pub const CLOCKS_APART_MAX: MicroSpan = MicroSpan::from_secs(1);

/// What time it is by the node's own clock.
pub type Now = Arc<dyn Fn() -> Micros + Send + Sync>;
