//! Any bytes as the address of a store. See the function that it calls for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_config::address::fuzz::store_address(data));
