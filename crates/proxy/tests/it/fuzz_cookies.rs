//! Fuzz tests of reading and removing cookies.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-proxy --test it fuzz_cookies` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` starts from another seed, or repeats a failure.

use std::path::Path;

use anteroom_proxy::fuzz::cookie_header;
use anteroom_testkit::{Effort, Field, Language, fuzz, seeds};
use proptest::prelude::*;

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b";",
        b"; ",
        b";;",
        b"=",
        b" ",
        b"\t",
        b"\"",
        b",",
        b"\n",
        b"\0",
        b"\x7f",
        b"\xff",
        b"\xc3\xa9",
        b"\xe2\x80\xa8",
        b"\xc2\xa0",
        b"__anteroom_",
        b"__Anteroom_shop",
        b"__anteroom_shop=",
        b"; __anteroom_shop=a; ",
        b"__anteroom_fair=b",
        b"$Version=1",
    ],
    field: Some(Field {
        begins_after: b'=',
        ends_before: b';',
    }),
};

fn corpus() -> Vec<Vec<u8>> {
    seeds::of_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz/cookie_header"))
}

#[test]
fn every_seed_holds_what_must_hold() {
    for seed in corpus() {
        cookie_header(&seed);
    }
}

#[test]
fn damaged_headers_hold_what_must_hold() {
    fuzz(
        Effort::from_environment(),
        &LANGUAGE,
        &corpus(),
        cookie_header,
    );
}

/// Generates headers from relevant pieces and a few other bytes.
fn headers() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        4 => prop::sample::select(LANGUAGE.pieces).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_headers_hold_what_must_hold(headers in headers()) {
        cookie_header(&headers);
    }
}
