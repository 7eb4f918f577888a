//! Damaged addresses of stores: the parser never panics, and nothing shows a password.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-config --test it fuzz_store_address` runs
//! longer; `ANTEROOM_FUZZ_SEED=n` sets another seed, or repeats a failure.

use std::path::Path;

use anteroom_config::address::fuzz::store_address;
use anteroom_testkit::{Effort, Field, Language, fuzz, seeds};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"redis",
        b"valkey",
        b"rediss://",
        b"redis://",
        b"valkeys+sentinel://",
        b"redis+cluster://",
        b"+",
        b"://",
        b":",
        b"/",
        b"@",
        b",",
        b"?",
        b"#",
        b"[",
        b"]",
        b"[::1]",
        b"[::ffff:10.0.0.5]",
        b":6379",
        b":0",
        b":65536",
        b"/0",
        b"/2147483648",
        b"/shop",
        b"me:secret@",
        b":%40@",
        b"%",
        b"%0a",
        b"%00",
        b"%25",
        b"%c3%a9",
        b"%ff",
        b"\xc3\xa9",
        b"\xff",
        b"\n",
        b" ",
        b"a.",
    ],
    field: Some(Field {
        begins_after: b'/',
        ends_before: b'/',
    }),
};

fn corpus() -> Vec<Vec<u8>> {
    seeds::of_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz/store_address"))
}

#[test]
fn every_seed_keeps_the_properties() {
    for seed in corpus() {
        store_address(&seed);
    }
}

#[test]
fn damaged_addresses_keep_the_properties() {
    fuzz(
        Effort::from_environment(),
        &LANGUAGE,
        &corpus(),
        store_address,
    );
}
