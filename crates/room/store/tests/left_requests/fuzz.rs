//! Fuzz test of damaged requests: they never cause a panic, and never change in a round trip.
//!
//! Set `ANTEROOM_FUZZ_SECONDS` for a longer run, as in `ANTEROOM_FUZZ_SECONDS=10 cargo test -p
//! anteroom-store --test left_requests fuzz`. `ANTEROOM_FUZZ_SEED=n` sets the first seed, or
//! repeats a failure.

use anteroom_store::fuzz::left_requests;
use anteroom_store::wire::ledger::left_request;
use anteroom_testkit::{Effort, Language, fuzz};

use super::children::{Child, root};
use super::memory;

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\x00",
        b"\x01",
        b"\x02",
        b"\x7f",
        b"\x80\x01",
        b"\xff",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ],
    field: None,
};

/// Returns requests of a child that joins, and of one that has joined.
async fn corpus() -> Vec<Vec<u8>> {
    let store = memory();
    let mut child = Child::new(root(&store), 1);
    let first = child.left_request().value;
    child.sync().await;
    let second = child.left_request().value;
    for request in [&first, &second] {
        assert!(left_request::decode(request).is_some());
    }
    vec![first, second]
}

#[tokio::test]
async fn seeds_hold_the_invariants() {
    for seed in corpus().await {
        left_requests(&seed);
    }
}

#[tokio::test]
async fn damaged_requests_hold_the_invariants() {
    fuzz(
        Effort::from_environment(),
        &LANGUAGE,
        &corpus().await,
        left_requests,
    );
}
