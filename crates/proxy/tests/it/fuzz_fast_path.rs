//! Fuzz tests of the fast path: which requests it takes and what it sends on, and what clients get
//! of responses.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-proxy --test it fuzz_fast_path` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` starts from another seed, or repeats a failure.

use std::path::Path;

use anteroom_proxy::fuzz::{fast_request, fast_response};
use anteroom_testkit::{Effort, Field, Language, fuzz, seeds};

const REQUESTS: Language<'_> = Language {
    pieces: &[
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b"\t",
        b":",
        b": ",
        b"?",
        b"#",
        b"%",
        b"/",
        b"\xff",
        b"\x7f",
        b"HEAD ",
        b"POST ",
        b"HTTP/1.0",
        b"Host: b\r\n",
        b"Content-Length: 5\r\n",
        b"content_length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"Connection: x\r\n",
        b"Cookie: __anteroom_shop=a; b=c\r\n",
        b"X-Forwarded-For: 1.2.3.4\r\n",
        b"x_forwarded_for: 1.2.3.4\r\n",
        b"X-Forwarded-Proto: https\r\n",
        b"X-Forwarded-Host: b\r\n",
        b"Forwarded: for=1.2.3.4\r\n",
        b"Anteroom-Visitor: 1\r\n",
        b"X-Real-IP: 1.2.3.4\r\n",
        b"Via: 1.1 a\r\n",
    ],
    field: Some(Field {
        begins_after: b':',
        ends_before: b'\r',
    }),
};

const RESPONSES: Language<'_> = Language {
    pieces: &[
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b";",
        b",",
        b"0\r\n\r\n",
        b"5\r\nhello\r\n",
        b"+5",
        b"ffffffffffffffff\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Connection: close\r\n",
        b"Connection: x\r\n",
        b"Keep-Alive: 5\r\n",
        b"Set-Cookie: __anteroom_shop=a\r\n",
        b"Anteroom-Command: revoke\r\n",
        b"Trailer: x\r\n",
    ],
    field: Some(Field {
        begins_after: b':',
        ends_before: b'\r',
    }),
};

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz");
    seeds::of_folder(&folder.join(name))
}

#[test]
fn every_seed_holds_what_must_hold() {
    for seed in corpus("fast_request") {
        fast_request(&seed);
    }
    for seed in corpus("fast_response") {
        fast_response(&seed);
    }
}

#[test]
fn damaged_requests_hold_what_must_hold() {
    let seeds = corpus("fast_request");
    fuzz(Effort::from_environment(), &REQUESTS, &seeds, fast_request);
}

#[test]
fn damaged_responses_hold_what_must_hold() {
    let seeds = corpus("fast_response");
    fuzz(
        Effort::from_environment(),
        &RESPONSES,
        &seeds,
        fast_response,
    );
}
