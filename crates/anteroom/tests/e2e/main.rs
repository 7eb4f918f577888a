//! End to end: the real binary, real sockets, real cookies, and an origin that checks the limits.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod api;
mod browser;
mod demo;
mod limits;
mod night;
mod operations;
mod simulate;
mod support;
mod survive;
mod visitors;
