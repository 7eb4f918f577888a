//! Raw bytes at the door, on real sockets, and an origin that records what reaches it.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

mod http2;
mod http2_wire;
mod smuggling;
mod support;
