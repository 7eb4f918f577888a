//! Proxy on real sockets: a raw client, the gateway, and an origin.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

mod disguises;
mod expectations;
mod framing;
mod headers;
mod http2;
mod leaving;
mod lifecycle;
mod limited;
mod loops;
mod outcomes;
mod own_answers;
mod rate_limits;
mod retries;
mod short_bodies;
mod sites;
mod streaming;
mod support;
mod upgrades;
mod whole_gateway;
