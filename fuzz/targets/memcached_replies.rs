//! Any bytes as what a memcached sends. See the function that it calls for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_memcached::fuzz::replies(data));
