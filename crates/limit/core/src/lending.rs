//! Calls that are lent: how do many nodes decide by themselves, and never above the limit together?
//!
//! A node is lent a batch of calls ahead of demand and spends it without asking anybody. A lease is
//! prepaid: the whole batch is charged to the client when it is lent, and what the node does not
//! spend is lost to it, and free again when the charge is over. So nothing ever has to be told
//! back, and a node that crashes, falls silent or is cut off costs what it was lent and no more.
//!
//! [`parent::lend`] is the parent's half: a pure function of two records, a request and the store's
//! clock. [`holding::Holding`] is the node's. [`epoch`] says what a store's memory is worth,
//! [`widened`] why the sum of all leases keeps the limit. Deliberately absent: stores, keys,
//! messages, clocks, and calls that are given back to the parent.
//!
//! # The order of things
//!
//! 1. The node asks [`holding::Holding::poll_request`].
//! 2. It reads the client's record and then the epoch's; what the store's clock said at the first
//!    read is `now`. [`epoch::judge`] says whether the epoch's record must be written first.
//! 3. [`parent::lend`] gives the record to be written and the answer. The answer counts only if the
//!    record was written, over the version that was read, into the store that was read. If somebody
//!    else wrote first, all that was read is read again.
//! 4. [`holding::Holding::handle_answer`], with the moment at which that read was sent.

mod demand;
pub mod epoch;
pub mod holding;
mod leases;
pub mod message;
pub mod parent;
pub mod record;
pub mod widened;
