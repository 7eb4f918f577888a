//! Do the limits hold on real processes? Redis servers, links that can be cut, nodes that can be
//! killed, an origin that judges, and a crowd with cookies: all on one machine, all through sockets.
//!
//! For tests and for runs by hand; nothing here ships. What must hold in which run is said by the
//! tests. Nothing here knows how a node decides: it is started as an operator starts it, and judged
//! by what arrives at the origin and by what visitors are told.

pub mod binary;
pub mod callers;
pub mod clock;
pub mod cluster;
pub mod crowd;
pub mod fill;
pub mod judge;
pub mod node;
mod recorder;
pub mod stepped;
pub mod stores;
pub mod switch;

pub use anteroom_testkit::redis_server::eventually;
