//! What the binary is made of, as a library, so that tests can use the parts without a process.
//!
//! Only the demo's parts live here. The other commands belong to the binary alone.

pub mod demo;
