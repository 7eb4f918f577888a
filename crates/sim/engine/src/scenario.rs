//! What is rehearsed: rooms, data centers, a crowd, faults.
//!
//! How a scenario is written down is in `file`; what it means is in `model`; what a command line
//! changes about it is in `settings`; those that everybody has are in `shipped`.

pub mod file;
pub mod model;
pub mod settings;
pub mod shipped;
