//! Tests with a real Envoy in front of an origin, which uses the service.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod docs;
mod process;
mod quota;
mod traffic;
