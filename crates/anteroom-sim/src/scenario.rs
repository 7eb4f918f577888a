//! What is rehearsed: rooms, data centers, a crowd, faults.
//!
//! How a scenario is written down is in `file`; what it means is in `model`.

pub mod model;
