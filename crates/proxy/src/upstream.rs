//! The side that faces origins: which of a room's origins takes a request, is it well, and over
//! which connection does it go there?
//!
//! A [`Group`] is what a room has of origins; [`Origins`] holds the groups of all rooms over
//! reloads. A [`Delivery`] takes one request to an origin, and to another one where that does no
//! harm. What a request and an answer look like to either side is the gateway's business; whether
//! somebody new may come in is the room's.
//!
//! In the order of a request's way:
//!
//! - `origins` and `group` are what the config says; `health` and `check` say which are well, and
//!   `group::balancer` which one is next;
//! - `delivery` tries one after the other, by what `failure` makes of errors;
//! - `pool` has the connections to one origin: `http1` those that are idle, `http2` those that are
//!   shared, with their limits, `dialect` says a request in either;
//! - `resolve`, `connect` and `trust` make a connection, `lease` is a request's part in it;
//! - `outcome`, `counts` and `stats` are for metrics.
//!
//! Deliberately absent: keeping a visitor to one origin.

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
mod kept;
mod lease;
mod limits;
mod origin;
mod origins;
mod outcome;
mod pool;
mod request;
mod resolve;
mod stats;
mod trust;

pub use connect::ConnectError;
pub use delivery::{Answer, Delivery};
pub use failure::Failure;
pub use group::Group;
pub use health::Condition;
pub use lease::Lease;
pub use limits::Limits;
pub use origins::{Origins, OriginsError, Plan, find_ca_files};
pub use outcome::Outcome;
pub use request::RequestBody;
pub use stats::{OriginStats, RetryStats, RoomOriginStats};
pub use trust::TrustError;
