//! Damaged replies of a server: never a panic, and never another meaning when more bytes follow.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-memcached --test it fuzz_replies` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` chooses another start, or repeats a failure.

use anteroom_memcached::fuzz::replies;
use anteroom_testkit::{Effort, Language, fuzz};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"HD\r\n",
        b"EN\r\n",
        b"EX\r\n",
        b"NS\r\n",
        b"VA ",
        b"VA 0 c1\r\n\r\n",
        b"VA 1\r\n7\r\n",
        b"VA 1048576 c1\r\n",
        b"VA 1048577\r\n",
        b" c18446744073709551615",
        b" c18446744073709551616",
        b"SERVER_ERROR ",
        b"\xff\x00",
        b"1g 7 0",
        b"1l 7 0",
        b"1t 1 2 3",
        b"1d 1 1",
        b"1w 5 50 1",
        b"4294967296",
    ],
    field: None,
};

fn corpus() -> Vec<Vec<u8>> {
    let state = |text: &str| format!("VA {} c12\r\n{text}\r\n", text.len());
    let texts = [
        "HD\r\nEN\r\nEX\r\nNS\r\nNF\r\nMN\r\n".to_owned(),
        "VA 2\r\n9 \r\nVA 10 c7 t59\r\n4294967295\r\n".to_owned(),
        "ERROR\r\nCLIENT_ERROR bad command line format\r\n".to_owned(),
        "SERVER_ERROR object too large for cache\r\n".to_owned(),
        state("1g 19000007 0") + &state("1l 19000007 4"),
        state("1t 1000307 3000 5") + &state("1d 1000007 2 300 1") + &state("1"),
        state("1w 5 0 3 0 2") + &state("1f 1 0 3") + &state("1s 2 0 3"),
    ];
    texts.map(String::into_bytes).to_vec()
}

#[test]
fn every_seed_keeps_the_invariants() {
    for seed in corpus() {
        replies(&seed);
    }
}

#[test]
fn damaged_replies_keep_the_invariants() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), replies);
}
