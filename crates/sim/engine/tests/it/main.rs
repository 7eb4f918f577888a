//! Integration tests in one binary, because linking one for each file takes longer.

mod allocations;
mod events;
mod far_root;
mod fixtures;
mod fuzz;
mod invariants;
mod limits;
mod order;
mod seeds;
