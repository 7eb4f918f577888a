//! Any bytes as the record of the rooms of the API, and as one room. See the function that it calls
//! for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_config::fuzz::api_rooms(data));
