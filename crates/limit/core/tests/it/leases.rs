//! Simulation of leases: requests that many nodes allow keep the limit, whatever happens to nodes,
//! messages and the store.
//!
//! A small simulator with virtual time, seeds, nodes with clocks of their own, one store, one
//! client, and a checker that sees every allowed request.

mod checker;
mod draw;
mod faults;
mod flow;
mod mutations;
mod node;
mod plan;
mod simulation;
mod store;
