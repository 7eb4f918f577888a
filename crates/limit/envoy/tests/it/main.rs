//! All integration tests in one binary, as linking one per file takes longer.

mod bad_files;
mod envoy;
mod fuzz_descriptors;
mod reference;
mod service;
