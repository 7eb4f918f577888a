//! Fuzz test of damaged files: no panic, no rejection without a mistake, and no message of several
//! lines.
//!
//! Set `ANTEROOM_FUZZ_SECONDS` for a longer run, as in `ANTEROOM_FUZZ_SECONDS=10 cargo test -p
//! anteroom-envoy --test it fuzz_descriptors`. `ANTEROOM_FUZZ_SEED=n` sets the first seed, or
//! repeats a failure.

use std::path::Path;

use anteroom_envoy::config::fuzz::descriptors;
use anteroom_testkit::{Effort, Field, Language, fuzz, seeds};
use proptest::prelude::*;

/// Pieces with a meaning in files of descriptors.
const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\n",
        b"\n  ",
        b"\n- ",
        b"\n      ",
        b": ",
        b":",
        b"\t",
        b"\"",
        b"'",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"#",
        b"&a ",
        b"*a",
        b"<<: *a\n",
        b"|\n",
        b">-\n",
        b"? ",
        b"!!int ",
        b"!!float ",
        b"!x ",
        b"!",
        b"%YAML 1.1\n",
        b"---\n",
        b"...\n",
        b"~",
        b"NULL",
        b"yes",
        b"0x1f",
        b"1_0",
        b"1.5",
        b"-1",
        b"99999999999999999999",
        b"2030-01-31",
        b"*",
        b"a*b*",
        b"domain: d\n",
        b"descriptors:\n",
        b"- key: k\n",
        b"value: v\n",
        b"rate_limit:\n",
        b"unit: day\n",
        b"requests_per_unit: 5\n",
        b"unlimited: true\n",
        b"replaces: [{name: n}]\n",
        b"share_threshold: true\n",
        b"metadata: {a: [1, {b: ~}]}\n",
        b"algorithm: gcra\n",
        b"burst: 5\n",
        b"\\u2028",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\r",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\0",
    ],
    field: Some(Field {
        begins_after: b':',
        ends_before: b'\n',
    }),
};

fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut corpus = seeds::of_folder_with_extension(&root.join("testdata/bad"), "yaml");
    corpus.extend(seeds::of_folder_with_extension(
        &root.join("testdata/good"),
        "yaml",
    ));
    corpus
}

#[test]
fn files_of_the_corpus_hold_the_invariants() {
    for file in corpus() {
        descriptors(&file);
    }
}

#[test]
fn damaged_files_hold_the_invariants() {
    fuzz(
        Effort::from_environment(),
        &LANGUAGE,
        &corpus(),
        descriptors,
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_hold_the_invariants(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        descriptors(&bytes);
    }

    #[test]
    fn any_characters_hold_the_invariants(text in "[-?:,\\[\\]{}#&*!|>'\"%@`~ \\n\\ta1.]{0,24}") {
        descriptors(text.as_bytes());
    }
}
