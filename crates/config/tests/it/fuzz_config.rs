//! The config parser on damaged files: it never panics, and a message is one line without secrets.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-config --test it fuzz_config` runs longer;
//! `ANTEROOM_FUZZ_SEED=n` sets another seed, or repeats a failure.

use std::fs;
use std::path::Path;

use anteroom_testkit::{Effort, Field, Language, fuzz, seeds};

/// Tokens of a config file.
const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\n",
        b"\n\n",
        b"[[room]]\n",
        b"[server]\n",
        b"[room.",
        b"]",
        b"[",
        b"{",
        b"}",
        b"=",
        b",",
        b".",
        b"\"",
        b"'",
        b"\"\"\"",
        b"#",
        b"\\u0000",
        b"\\n",
        b"\xe2\x80\xa8",
        b"\r\n",
        b"\xc3\xa9",
        b"\xf4\x8f\xbf\xbf",
        b"-1",
        b"0",
        b"1e400",
        b"nan",
        b"inf",
        b"0xffffffffffffffffffff",
        b"true",
        b"2030-01-31T10:00:00",
        b"1969-12-31T23:59:59Z",
        b"9999-12-31T23:59:59.999999999+23:59",
        b"\"5m\"",
        b"\"99999999999999999999d\"",
        b"\"[::1]:0\"",
        b"\"http://a\"",
        b"\"%\"",
        b"\"/..//%2e\"",
        b"host",
        b"path",
        b"bypass",
        b"ticket_keys",
        b"room",
        b"additional_routes",
        b"[store]\n",
        b"kind = \"valkey\"\n",
        b"local",
        b"password",
        b"[[limit]]\n",
        b"algorithm = \"leaky-bucket\"\n",
        b"\"0/31d\"",
        b"\"4294967295/s\"",
        b"overrides = [{ key = \"",
        b"\"header:x\"",
        b"\"redis://me:Lh5uJc1eAo9sGd3f@10.0.0.5\"",
        b"\"rediss+sentinel://a,b/shop/1\"",
        b"q7TzN0mK2xVbYw8rLh5uJc1eAo9sGd3fPi6kRt4nXyE=",
    ],
    field: Some(Field {
        begins_after: b'=',
        ends_before: b'\n',
    }),
};

fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut corpus = seeds::of_folder_with_extension(&root.join("testdata/config"), "toml");
    let example = fs::read(root.join("../../anteroom.example.toml"));
    corpus.push(example.expect("the example stands in the root"));
    corpus
}

#[test]
fn every_file_of_the_corpus_keeps_the_properties() {
    for file in corpus() {
        anteroom_config::fuzz::config(&file);
    }
}

#[test]
fn damaged_files_keep_the_properties() {
    fuzz(
        Effort::from_environment(),
        &LANGUAGE,
        &corpus(),
        anteroom_config::fuzz::config,
    );
}
