//! Raw bytes at the listener, on real sockets, and an origin that records the requests that reach
//! it.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

mod both_paths;
mod http2;
mod http2_wire;
mod smuggling;
mod support;
