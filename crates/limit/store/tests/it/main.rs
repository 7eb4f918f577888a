//! All integration tests in one binary, as linking one per file takes longer.

mod fuzz_records;
mod leases;
mod shared;
