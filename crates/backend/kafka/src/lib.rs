//! Request counts over Kafka, for deployments that have no other store: [`KafkaCounts`].
//!
//! Nodes do not wait for each other. Each decides alone, sends its counts to one topic, and reads
//! the totals of all from another. Kafka's consumer groups choose the aggregators among the nodes.
//! So a request costs no round trip, and a node learns what others admitted some tenths of a second
//! late, more under load. [`KafkaCounts`] describes what that means for a limit.
//!
//! # Why counts and not events
//!
//! An event per request would have to be counted exactly once: by the successor of an aggregator
//! that crashed, and by its sender, which must know when a total contains it. So a node sends its
//! absolute count of a client in a sub-window, and a total is the list of these counts. Joining
//! takes the newer one. So nothing depends on transactions or an idempotent producer, offsets only
//! mark where reading continues, and the aggregator has no state outside of its totals. The price:
//! a total is 16 bytes longer for each node that counted.
//!
//! Tested against the mock cluster that comes with the client library (librdkafka), never against a
//! real broker.
//!
//! Deliberately absent: TLS and what needs it (the library is built without), algorithms that need
//! more than sums, and leases.

mod contact;
mod counter_table;
mod counts;
#[doc(hidden)]
pub mod fuzz;
mod heartbeats;
mod link;
mod message;
mod names;
mod node;
mod partitions;
mod settings;
mod stats;

pub use counts::KafkaCounts;
pub use heartbeats::UNAVAILABLE_AFTER;
pub use settings::{KafkaSettings, KafkaSetupError, LookBack};
