//! Any bytes as a request that was left beside a record. The function that it calls says what must
//! hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_store::fuzz::left_requests(data));
