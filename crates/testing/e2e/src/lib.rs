//! Support for tests of the whole product. Nothing here ships.
//!
//! - Clusters: Redis servers, links that can be cut, nodes that can be killed, an origin that
//!   judges, and a crowd with cookies, all on one machine, all through sockets. A node is started
//!   as an operator starts it, and judged by what arrives at the origin and by what visitors are
//!   told.
//! - [`deploy`]: readers for the files in `deploy/`.
//! - [`replay`]: schedules of the simulator, played on real stores.

pub mod binary;
pub mod callers;
pub mod clock;
pub mod cluster;
pub mod crowd;
pub mod deploy;
pub mod fill;
pub mod judge;
pub mod node;
mod recorder;
pub mod replay;
pub mod stepped;
pub mod stores;
pub mod switch;

pub use anteroom_testkit::eventually;
