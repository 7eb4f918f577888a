//! Support for tests of the whole product. Nothing here ships.
//!
//! - Clusters: Redis servers, links that can be cut, nodes that can be killed, an origin that
//!   checks limits, and visitors with cookies, all on one machine and through sockets. Nodes start
//!   as an operator starts them. Tests check the requests at the origin and the responses to
//!   visitors.
//! - [`deploy`]: readers for the files in `deploy/`.
//! - [`replay`]: schedules of the simulator, replayed on real stores.

pub mod api_clients;
pub mod binary;
pub mod cluster;
pub mod deploy;
pub mod fill;
pub mod machine;
pub mod newcomers;
pub mod node;
pub mod origin;
mod recorder;
pub mod replay;
pub mod stepped;
pub mod stores;
pub mod switch;
pub mod table;
pub mod truth;

pub use anteroom_testkit::eventually;
