//! Counts of calls over Kafka, for whoever has that and nothing else: [`KafkaCounts`].
//!
//! Nodes do not wait for each other. Each decides by itself, tells what it counted to one topic,
//! and hears the totals of all from another; who sums up is agreed on by Kafka's consumer groups,
//! among the nodes themselves. So a call costs nothing, and what others admitted is known a few
//! tenths of a second late, more under load. What that means for a limit stands with
//! [`KafkaCounts`].
//!
//! # Why figures and not events
//!
//! An event for each call, summed up, would have to be counted exactly once: by whoever takes over
//! from an aggregator that crashed in the middle, and by the node that made it, which must know
//! when a total contains it. So a node tells how much it has admitted of a client in a stretch of
//! time *so far*, and a total is the list of such figures. They are joined by taking the newer one,
//! so nothing depends on transactions or an idempotent producer, and offsets only say where reading
//! goes on; and the aggregator keeps nothing that is not in its totals. The price: a total is 16
//! bytes longer for each node that counted.
//!
//! Tested against the mock cluster that comes with the client library (librdkafka), never against a
//! real broker.
//!
//! Deliberately absent: TLS and what needs it (the library is built without), algorithms that need
//! more than sums, and leases.

mod beats;
mod board;
mod contact;
mod counts;
#[doc(hidden)]
pub mod fuzz;
mod link;
mod message;
mod names;
mod node;
mod partitions;
mod settings;
mod stats;

pub use beats::AWAY_AFTER;
pub use counts::KafkaCounts;
pub use settings::{KafkaSettings, KafkaSetupError, LookBack};
