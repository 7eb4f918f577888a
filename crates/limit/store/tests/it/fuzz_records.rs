//! Fuzz test of damaged records: they never cause a panic, and never change in a round trip.
//!
//! Set `ANTEROOM_FUZZ_SECONDS` for a longer run, as in `ANTEROOM_FUZZ_SECONDS=10 cargo test -p
//! anteroom-limit-store --test it fuzz_records`. `ANTEROOM_FUZZ_SEED=n` sets the first seed, or
//! repeats a failure.

use anteroom_limit_store::leases::fuzz::records;
use anteroom_testkit::{Effort, Language, fuzz};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\x01",
        b"\x02",
        b"\x00",
        b"\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b";",
        b" ",
        b"0",
        b"1",
        b"9",
        b"-1",
        b"w 5 ",
        b"x 4",
        b"d 1 1",
        b"t 8 9",
        b"4294967295",
        b"1700000000000000",
        b"9007199254740993",
        b"18446744073709551615",
    ],
    field: None,
};

/// Returns a record of each algorithm, as in the golden test.
fn corpus() -> Vec<Vec<u8>> {
    let records = [
        "3 16909060 3000000 10 60000000 e;1000307 5;d 1000007 2 300 1;",
        "3 16909060 3000000 10 60000000 f;1000307 5;f 1 0 3;",
        "3 16909060 3000000 10 60000000 s;1000307 5;s 2 0 3;",
        "3 16909060 3000000 10 60000000 w 4;1000307 5;w 5 0 3;",
        "3 16909060 3000000 10 60000000 x 4;1000307 5;w 5 0 3 0 2;",
        "3 16909060 3000000 10 60000000 t 8 9;1000307 5;t 1000307 3000 5;",
        "3 16909060 3000000 10 60000000 g 8;1000307 5;g 19000007 0;",
    ];
    let records = records.map(|record| format!("\u{2}{record}").into_bytes());
    let epoch = b"\x01\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02\
                  \x80\x80\x81\xb1\x84\xe9\x91\x03\x01";
    records.into_iter().chain([epoch.to_vec()]).collect()
}

#[test]
fn seeds_hold_the_invariants() {
    for seed in corpus() {
        records(&seed);
    }
}

#[test]
fn damaged_records_hold_the_invariants() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), records);
}
