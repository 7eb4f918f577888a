//! Any bytes as a file of descriptors. See the function that it calls for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_envoy::config::fuzz::descriptors(data));
