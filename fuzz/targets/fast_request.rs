//! Any bytes as a request on the fast path. See the function that it calls for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_proxy::fuzz::fast_request(data));
