//! Simulator: the production core under a virtual clock, a virtual network and simulated visitors.
//!
//! It shows an operator what the next sale will look like, and shows that no invariant is ever
//! broken. It never waits, opens a socket or reads a clock: a run is a pure function of its
//! scenario and its seed. `anteroom-sim-report` shows the results.

pub mod checkers;
mod deployment;
mod event_queue;
mod measure;
pub mod outcome;
pub mod recording;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod seeds;
pub mod trace;
mod visitors;

pub use run::{Progress, Simulation, run};
