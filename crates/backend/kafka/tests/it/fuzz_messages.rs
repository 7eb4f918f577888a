//! Damaged messages of a topic: never a panic, and never decoded differently than encoded.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-kafka --test it fuzz_messages` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` chooses another start, or repeats a failure.

use anteroom_kafka::fuzz::messages;
use anteroom_testkit::{Effort, Language, fuzz};

/// End of validity of messages in this test.
const UNTIL: u64 = 1_767_225_660_000_000;

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\x01",
        b"\x02",
        b"\x00\x00\x00\x00\x00\x00\x00\x01",
        b"\x00\x00\x00\x00",
        b"\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x00\x06\x47\x4c\x1d\xf0\x93\x00",
        b"\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00\x06",
    ],
    field: None,
};

fn message(nodes: u64) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend(7_u128.to_be_bytes());
    bytes.extend(29_453_760_u64.to_be_bytes());
    bytes.extend(UNTIL.to_be_bytes());
    for node in 1..=nodes {
        bytes.extend(node.to_be_bytes());
        bytes.extend([0, 0, 0, 9, 0, 0, 0, 2]);
    }
    bytes
}

fn corpus() -> Vec<Vec<u8>> {
    [1, 2, 5, 300].map(message).to_vec()
}

#[test]
fn every_seed_keeps_the_invariants() {
    for seed in corpus() {
        messages(&seed);
    }
}

#[test]
fn damaged_messages_keep_the_invariants() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), messages);
}
