//! Envoy's rate limit service: what a client is answered.
//!
//! Takes the place of envoyproxy/ratelimit: its files ([`folder`]), its gRPC method, its `/json`.
//! Which limits a request meets is said by [`config`]; how much is left of them by
//! `anteroom-limit`, whose states `anteroom-limit-store` keeps.
//!
//! Deliberately absent: which store there is, and what time it is. Both are brought along.

mod answer;
mod asking;
mod budget;
pub mod config;
pub mod counting;
pub mod folder;
mod grpc;
mod http_door;
mod json;
mod judge;
mod opening;
mod policy;
mod quota;
mod serve;
mod service;
pub mod stats;
mod weighed;
pub mod wire;

pub use counting::Counts;
pub use service::{RateLimitService, ServiceSockets, StartError};
pub use stats::ServiceStats;
