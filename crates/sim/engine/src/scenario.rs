//! Scenario of a simulation: rooms, data centers, visitors, faults.
//!
//! `file` reads the format, `model` has the values, `settings` applies changes of the command line,
//! and `shipped` has the scenarios of the program.

pub mod file;
pub mod model;
pub mod settings;
pub mod shipped;
