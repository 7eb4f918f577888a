//! Origins on real sockets: TLS and what is said about HTTP/2, health checks, reloads.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

#[path = "origin/checks.rs"]
mod checks;
#[path = "origin/reload.rs"]
mod reload;
#[path = "origin/support.rs"]
mod support;
#[path = "origin/tls.rs"]
mod tls;
