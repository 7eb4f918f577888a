//! Upstream side: choice of an origin for a request, health of origins, and connections to them.
//!
//! A [`Group`] has the origins of a room; [`Origins`] keeps the groups of all rooms across reloads.
//! A [`Delivery`] sends one request to an origin, and to another one where that is safe. The
//! `reverse_proxy` decides what requests and responses look like, and the room who may enter.
//!
//! In the order of a request's path:
//!
//! - `origins` and `group` are the origins of the config; `health` and `check` decide which are
//!   healthy, and `group::balancer` which one is next;
//! - `delivery` tries one after the other, by the classification of errors in `failure`;
//! - `pool` has the connections to one origin: `http1` the idle ones, `http2` the shared ones with
//!   their limits, `dialect` formats a request for either;
//! - `resolve`, `connect` and `trust` make a connection, `lease` is a request's hold on it;
//! - `outcome`, `counts` and `stats` are for metrics.
//!
//! Session affinity is not supported.

mod check;
mod connect;
mod counts;
mod delivery;
mod dialect;
mod failure;
mod group;
mod health;
mod http1;
mod http2;
mod lease;
mod limits;
pub(crate) mod open_connections;
mod origin;
mod origins;
mod outcome;
mod pool;
mod request;
mod resolve;
mod stats;
mod trust;

pub use connect::ConnectError;
pub(crate) use failure::is_gone;
pub(crate) use origin::Origin;
pub(crate) use pool::STALE_WITHIN;

pub use delivery::{Delivery, UpstreamResponse};
pub use failure::Failure;
pub use group::Group;
pub use health::Condition;
pub use lease::Lease;
pub use limits::Limits;
pub use origins::{Origins, OriginsError, Plan, find_ca_files};
pub use outcome::Outcome;
pub use request::RequestBody;
pub use stats::{GroupStats, OriginStats, RetryStats};
pub use trust::TrustError;
