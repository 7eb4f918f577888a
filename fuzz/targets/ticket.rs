//! Any bytes as a ticket, sealed and unsealed. See the function that it calls for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anteroom_ticket::fuzz::ticket(data));
