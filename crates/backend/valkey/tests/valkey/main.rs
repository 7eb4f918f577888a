//! Tests of the shared store on real servers: conformance, failures, and error messages.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod circuit;
mod cluster;
mod conformance;
mod counts;
mod errors;
mod lease_records;
mod restarts;
mod support;
mod tls;
