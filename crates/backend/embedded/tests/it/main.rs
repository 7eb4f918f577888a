//! All integration tests in one program, which links faster than one for each file.

mod embedded;
mod leases;
