//! Do the calls that many nodes admit from leases keep the limit, whatever happens to nodes,
//! messages and the store?
//!
//! A small simulator: virtual time, seeds, nodes with clocks of their own, one store, one client,
//! and a judge who sees every call that was admitted.

mod draw;
mod faults;
mod flow;
mod judge;
mod node;
mod plan;
mod planted;
mod store;
mod world;
