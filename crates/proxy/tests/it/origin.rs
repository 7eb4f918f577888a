//! Tests of origins on real sockets: TLS and ALPN, retries, abandoned requests, health checks,
//! reloads.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

mod abandoned;
mod checks;
mod frames;
mod reload;
mod retries;
mod support;
mod threads;
mod tls;
