//! All tests from outside in one program: linking one for each file takes longer.

mod allocations;
mod fixtures;
mod fuzz;
mod limits;
mod order;
mod promises;
mod seeds;
