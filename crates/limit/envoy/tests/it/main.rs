//! All tests from outside in one program: linking one for each file takes longer.

mod bad_files;
mod envoy;
mod fuzz_descriptors;
mod reference;
mod service;
