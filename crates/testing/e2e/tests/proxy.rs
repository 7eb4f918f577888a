//! The proxy, on real sockets: a client written by hand, the gateway, and an origin.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

#[path = "proxy/disguises.rs"]
mod disguises;
#[path = "proxy/expectations.rs"]
mod expectations;
#[path = "proxy/framing.rs"]
mod framing;
#[path = "proxy/headers.rs"]
mod headers;
#[path = "proxy/http2.rs"]
mod http2;
#[path = "proxy/leaving.rs"]
mod leaving;
#[path = "proxy/lifecycle.rs"]
mod lifecycle;
#[path = "proxy/limited.rs"]
mod limited;
#[path = "proxy/loops.rs"]
mod loops;
#[path = "proxy/outcomes.rs"]
mod outcomes;
#[path = "proxy/rate_limits.rs"]
mod rate_limits;
#[path = "proxy/retries.rs"]
mod retries;
#[path = "proxy/streaming.rs"]
mod streaming;
#[path = "proxy/support.rs"]
mod support;
#[path = "proxy/upgrades.rs"]
mod upgrades;
#[path = "proxy/whole.rs"]
mod whole;
