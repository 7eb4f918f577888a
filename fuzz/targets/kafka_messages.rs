//! Any bytes as what lies in the topics of calls and totals. See the function that it calls for
//! what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_kafka::fuzz::messages(data));
