//! Counts over the mock cluster that comes with the client library: real connections and a real
//! protocol, groups that are agreed on, brokers that go away. No real broker was run: what one does
//! otherwise, such as looking offsets up by time, is not tested here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod away;
mod conformance;
mod demand;
mod groups;
mod partitions;
mod setup;
mod support;
