//! Counts over the mock cluster of the client library: real connections, the real protocol,
//! consumer groups, brokers that fail. Real brokers are not tested, nor what only they do, such as
//! looking up offsets by time.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod conformance;
mod groups;
mod overshoot;
mod partitions;
mod setup;
mod support;
mod unavailable;
