//! Origins on real sockets: TLS and what is said about HTTP/2, what is sent again, who leaves,
//! health checks, reloads.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

#[path = "origin/again.rs"]
mod again;
#[path = "origin/checks.rs"]
mod checks;
#[path = "origin/frames.rs"]
mod frames;
#[path = "origin/leaving.rs"]
mod leaving;
#[path = "origin/reload.rs"]
mod reload;
#[path = "origin/support.rs"]
mod support;
#[path = "origin/threads.rs"]
mod threads;
#[path = "origin/tls.rs"]
mod tls;
