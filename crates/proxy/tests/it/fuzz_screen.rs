//! Fuzz tests of the strict reader: no panic, and one opinion of where requests end.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-proxy --test it fuzz_screen` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` starts from another seed, or repeats a failure.

use std::path::Path;

use anteroom_proxy::fuzz::screen;
use anteroom_testkit::{Effort, Field, Language, fuzz, seeds};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b" ",
        b"\t",
        b":",
        b";",
        b",",
        b"0",
        b"1",
        b"a",
        b"\0",
        b"GET / HTTP/1.1\r\n",
        b"POST /x HTTP/1.1\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n",
        b"HTTP/1.0",
        b"Host: a\r\n",
        b"Content-Length: 1\r\n",
        b"content-length:0\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Upgrade: websocket\r\n",
        b"1\r\nx\r\n",
        b"0\r\n\r\n",
        b"0\r\nX: 1\r\n\r\n",
        b";a=b",
        b"ffffffffffffffff",
    ],
    field: Some(Field {
        begins_after: b'\n',
        ends_before: b'\r',
    }),
};

fn corpus() -> Vec<Vec<u8>> {
    seeds::of_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz/screen"))
}

#[test]
fn every_seed_holds_what_must_hold() {
    for seed in corpus() {
        screen(&seed);
    }
}

#[test]
fn damaged_requests_hold_what_must_hold() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), screen);
}
