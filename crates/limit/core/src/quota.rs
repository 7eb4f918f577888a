//! Quotas: requests of one limit that are assigned ahead to several members.
//!
//! An assignment is **prepaid**: it is taken from the limit first, like a request, and spent
//! afterwards. So the limit holds whatever happens to the assignment. A lost message, an Envoy that
//! ends or a process that is replaced wastes requests and never creates any. The ledger of a limit
//! ([`book`]) divides the requests; [`lifetime`] determines how long they may be spent.
//!
//! Pure steps with integers. Deliberately absent: clocks, stores, and the wire format.

pub mod book;
pub mod fair_share;
pub mod lifetime;
mod member;
