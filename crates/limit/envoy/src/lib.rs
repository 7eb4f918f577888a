//! Rate limit service and quota service for Envoy.
//!
//! Replaces envoyproxy/ratelimit: reads its files ([`folder`]), serves its gRPC method and its
//! `/json`. [`config`] matches requests to limits, `anteroom-limit` decides, and
//! `anteroom-limit-store` keeps the counts.
//!
//! Deliberately absent: the choice of store, and the clock. Both are arguments.

mod bounded_request;
mod budget;
pub mod config;
pub mod counting;
mod decision;
mod first_byte_timeout;
pub mod folder;
mod grpc;
mod http_endpoint;
mod json;
mod policy;
mod quota;
mod request_handler;
mod response;
mod serve;
mod service;
pub mod stats;
pub mod wire;

pub use counting::Counts;
pub use service::{RateLimitService, ServiceSockets, StartError};
pub use stats::ServiceStats;
