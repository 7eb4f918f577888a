//! Any bytes as a store's record of leased requests. The function that it calls says what must
//! hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_limit_store::leases::fuzz::records(data));
