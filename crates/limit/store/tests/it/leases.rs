//! Tests of counts by leases: over a failing store in virtual time, and over a real server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod checker;
mod conformance;
mod driver;
mod faults;
mod flood;
mod link;
mod node;
mod refunds;
mod steps;
mod store;
mod valkey;
