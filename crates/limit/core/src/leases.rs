//! Leases of requests: many nodes decide locally, and together stay within the limit.
//!
//! A node leases a batch of requests ahead of demand and spends it without contacting the store. A
//! lease is prepaid. The whole batch counts against the client when it is granted. What the node
//! does not spend is lost to it, and free again when that count expires. So a node never has to
//! return anything. A node that crashes, hangs or is cut off costs what it leased and no more.
//!
//! [`parent::grant`] is the parent's half: a pure function of two records, a request and the
//! store's clock. [`holding::Holding`] is the node's half. [`epoch`] detects stores that lost data;
//! [`widened`] shows why the sum of all leases keeps the limit. Deliberately absent: stores, keys,
//! messages, clocks, and requests that are returned to the parent.
//!
//! # Protocol
//!
//! 1. The node calls [`holding::Holding::poll_request`].
//! 2. It reads the client's record and then the epoch's. `now` is the time of the store's clock at
//!    the first read. [`epoch::decide`] decides whether the epoch's record must be written first.
//!    A store that promises to keep its writes grants to [`members`] only, and after it came back
//!    as another server, members first report what it may lack.
//! 3. [`parent::grant`] returns the record to write and the reply. The reply counts only if the
//!    record was written, over the version that was read, into the store that was read. If another
//!    node wrote first, this one reads everything again.
//! 4. The node calls [`holding::Holding::handle_reply`], with the time at which it sent that read.

mod demand;
pub mod epoch;
pub mod holding;
mod lease;
pub mod members;
pub mod message;
pub mod parent;
pub mod record;
pub mod widened;
