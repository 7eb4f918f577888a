//! All integration tests as one program, because linking one for each file is slower.

mod config;
mod config_fixtures;
mod example;
mod fuzz_api_rooms;
mod fuzz_config;
mod fuzz_overrides;
mod fuzz_store_address;
mod limits;
mod reference;
mod store;
