//! What would happen? The production core under a virtual clock, network and crowd.
//!
//! For an operator who wants to know what next Friday will look like, and for us, who must know
//! that no promise is ever broken. Nothing here waits, opens a socket or reads a clock: a run is a
//! pure function of its scenario and its seed. How what happened is shown is not known here.

mod crowd;
mod deployment;
pub mod judge;
mod measure;
pub mod outcome;
mod queue;
pub mod recording;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod seeds;
pub mod trace;

pub use run::{Progress, Simulation, run};
