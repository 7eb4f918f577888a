//! Damaged messages of other nodes: never a panic, and no further effect when repeated.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-gossip --test it fuzz_bodies` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` chooses another start, or repeats a failure.

use anteroom_gossip::fuzz::{a_message, bodies, datagrams};
use anteroom_testkit::{Effort, Language, fuzz};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\x00",
        b"\x01",
        b"\x02",
        b"\x00\x01",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\xff\xff",
        b"\x7f\x00\x00\x01",
        b"\x80\x9c\xc3\x1c",
    ],
    field: None,
};

fn corpus() -> Vec<Vec<u8>> {
    // The announcement of a new member to 127.0.0.1:7946, and the response.
    let announce =
        b"\x00\x00\x7f\x00\x00\x01\x8b\x3e\x07\x01\x00\x00\x7f\x00\x00\x01\x8a\x3e\x00\x00\x06";
    let gossip = b"\x00\x00\x7f\x00\x00\x01\x8b\x3e\x07\x01\x00\x00\x7f\x00\x00\x01\x8a\x3e\x01\
                   \x01\x08\x00\x01\x00\x7f\x00\x00\x01\x8c\x3e\x09\x01\x00\x00";
    vec![
        a_message(1),
        a_message(5),
        a_message(20),
        announce.to_vec(),
        gossip.to_vec(),
    ]
}

#[test]
fn every_seed_keeps_the_invariants() {
    for seed in corpus() {
        bodies(&seed);
        datagrams(&seed);
    }
}

#[test]
fn damaged_messages_keep_the_invariants() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), bodies);
}

#[test]
fn datagrams_without_the_secret_change_nothing() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), datagrams);
}
