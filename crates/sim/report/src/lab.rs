//! How well does a limit of calls count? The algorithms of the gateway on the same traffic, one or
//! many nodes, over models of how they share what they know, beside the truth: an exact sliding
//! count.
//!
//! Nothing here decides about a call: that is done by `anteroom-limit`, whose steps and leases run
//! in the gateway, too. Traffic, networks and stores around them are modelled, in virtual time. The
//! same seed gives the same bytes.

pub mod algorithm;
mod charts;
pub mod command;
mod estimate;
mod json;
pub mod outcome;
pub mod printing;
mod referee;
mod rng;
pub mod routing;
pub mod run;
mod stores;
pub mod story;
mod systems;
mod table;
pub mod traffic;
