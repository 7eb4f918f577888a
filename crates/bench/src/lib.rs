//! Code that the benchmarks share.

mod machine;

pub use machine::Machine;
