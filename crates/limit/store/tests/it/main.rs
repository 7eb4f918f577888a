//! All tests from outside in one program: linking one for each file takes longer.

mod fuzz_records;
mod leases;
mod shared;
