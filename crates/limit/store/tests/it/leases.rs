//! Counts by leases: over a store that fails in every way, in virtual time, and over a real one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod conformance;
mod driver;
mod faults;
mod flood;
mod judge;
mod node;
mod refunds;
mod steps;
mod store;
mod valkey;
mod way;
