//! The side that faces origins: which of a room's origins takes a request, is it well, and over
//! which connection does it go there?
//!
//! A [`Group`] is what a room has of origins; [`Origins`] holds the groups of all rooms over
//! reloads. A [`Delivery`] takes one request to an origin, and to another one where that does no
//! harm. What a request and an answer look like to either side is the gateway's business; whether
//! somebody new may come in is the room's.
//!
//! Deliberately absent: keeping a visitor to one origin.

mod check;
mod connect;
mod counts;
mod delivery;
mod dialect;
mod failure;
mod figures;
mod group;
mod health;
mod http1;
mod http2;
mod kept;
mod lease;
mod origin;
mod origins;
mod pool;
mod resolve;
mod trust;

pub use connect::ConnectError;
pub use delivery::{Answer, Delivery};
pub use failure::Failure;
pub use figures::{OriginFigures, RetryFigures, RoomOriginFigures};
pub use group::Group;
pub use health::Condition;
pub use lease::Lease;
pub use origin::Outcome;
pub use origins::{Origins, OriginsError, Plan, find_ca_files};
pub use pool::{Limits, RequestBody};
pub use trust::TrustError;
