//! Any bytes as what a node tells another. See the functions that it calls for what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    anteroom_gossip::fuzz::bodies(data);
    anteroom_gossip::fuzz::datagrams(data);
});
