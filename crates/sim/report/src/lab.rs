//! Lab for rate limits: how well they count. It runs the gateway's algorithms on the same traffic,
//! at one or many nodes, over models of how nodes share counts. It compares them with the truth, an
//! exact sliding count.
//!
//! `anteroom-limit` decides about every request; its steps and leases run in the gateway. Traffic,
//! networks and stores around it are models in virtual time. The same seed gives the same bytes.

pub mod algorithm;
mod charts;
pub mod command;
mod comparison;
mod estimate;
mod input;
mod json;
mod oracle;
pub mod outcome;
pub mod printing;
mod rng;
pub mod routing;
pub mod run;
mod stores;
pub mod story;
mod systems;
mod table;
pub mod traffic;
