//! Any bytes as what a store keeps of calls that are lent. See the function that it calls for what
//! must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_limit_store::leases::fuzz::records(data));
