//! All tests from outside in one program: linking one for each file takes longer.

mod config;
mod config_fixtures;
mod example;
mod fuzz_config;
mod fuzz_overrides;
mod fuzz_store_address;
mod limits;
mod reference;
mod store;
