//! Fuzz tests of path readings: no panic, and never above the budget.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-proxy --test it fuzz_path` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` starts from another seed, or repeats a failure.

use std::path::Path;

use anteroom_proxy::fuzz::path;
use anteroom_testkit::{Effort, Field, Language, fuzz, seeds};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"/",
        b"//",
        b".",
        b"..",
        b"/../",
        b"/./",
        b"\\",
        b";",
        b";/",
        b"%",
        b"%2f",
        b"%5C",
        b"%2e",
        b"%2E%2e",
        b"%3b",
        b"%25",
        b"%252f",
        b"%00",
        b"%1f",
        b"\x1f",
        b"%7f",
        b"%c0%af",
        b"%c3%a9",
        b"%e9",
        b"%u002f",
        b"%u002e",
        b"%u0000",
        b"%ud800",
        b"%U00e9",
        b"\xc3\xa9",
        b"\xff",
        b"shop",
    ],
    field: Some(Field {
        begins_after: b'/',
        ends_before: b'/',
    }),
};

fn corpus() -> Vec<Vec<u8>> {
    seeds::of_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz/path"))
}

#[test]
fn every_seed_holds_what_must_hold() {
    for seed in corpus() {
        path(&seed);
    }
}

#[test]
fn damaged_paths_hold_what_must_hold() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), path);
}
