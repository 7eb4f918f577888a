//! All integration tests in one program: linking one for each file takes longer.

mod leases;
mod limits;
mod quota;
