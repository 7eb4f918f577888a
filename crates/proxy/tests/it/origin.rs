//! Origins on real sockets: TLS and what is said about HTTP/2, what is sent again, who leaves,
//! health checks, reloads.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

mod again;
mod checks;
mod frames;
mod leaving;
mod reload;
mod support;
mod threads;
mod tls;
