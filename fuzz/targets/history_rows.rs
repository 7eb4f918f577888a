//! Any bytes as a row of history. See the function that it calls for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_history::fuzz::rows(data));
