//! Damaged rows: the decoder never panics, and what it reads is the same when it is written again.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-history --test it fuzz_rows` runs longer;
//! `ANTEROOM_FUZZ_SEED=n` sets another seed, or repeats a failure.

use anteroom_history::Row;
use anteroom_history::fuzz::rows;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_testkit::{Effort, Language, fuzz};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\x01",
        b"\x00",
        b"\x04",
        b"\x08",
        b"\x05\x04\x00\x20\x02\x04",
        b"\x63\x02\x07\x07",
        b"\x7f",
        b"\x80\x01",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x3f",
    ],
    field: None,
};

fn corpus() -> Vec<Vec<u8>> {
    let mut row = Row::default();
    row.figures.arrivals = 300;
    row.figures.admitted = 7;
    row.figures.announced.left_before = -3;
    row.figures.origin.statuses = [0, 1_000, 20, 3, 1, 1];
    row.room.samples = 240;
    row.room.as_of = Timestamp(1_694_432_700_000);
    row.room.active.max = 100;
    for ms in [3, 20, 90_000, 91_000, 400_000] {
        row.figures.waits.note(DurationMs(ms));
        row.figures.inside.note(DurationMs(ms * 2));
        row.figures.origin.latency.change(30, -5);
    }
    vec![row.encode(), Row::default().encode()]
}

#[test]
fn every_seed_keeps_the_properties() {
    for seed in corpus() {
        rows(&seed);
    }
}

#[test]
fn damaged_rows_keep_the_properties() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), rows);
}
