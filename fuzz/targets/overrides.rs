//! Any bytes as what operators say about a room. See the function that it calls for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_config::fuzz::overrides(data));
