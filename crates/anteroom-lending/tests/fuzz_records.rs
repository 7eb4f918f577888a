//! What a store may hold, damaged: never a panic, never another meaning when it is read again.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-lending --test fuzz_records` takes longer;
//! `ANTEROOM_FUZZ_SEED=n` begins elsewhere, or repeats a failure.

use anteroom_lending::fuzz::records;
use anteroom_testkit::{Effort, Language, fuzz};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"\x01",
        b"\x00",
        b"\x02",
        b"\xff",
        b"\x80\x80\x01",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80\x8e\xce\x1c",
        b"\xc0\x8d\xb7\x01",
    ],
    field: None,
};

/// One of each algorithm, as the golden test has them.
fn corpus() -> Vec<Vec<u8>> {
    let seeds = [
        "010384868808f3863d05c08db7010a808ece1c000102c7843d02ac0201",
        "010384868808f3863d05c08db7010a808ece1c01020003",
        "010384868808f3863d05c08db7010a808ece1c0203000300",
        "010384868808f3863d05c08db7010a808ece1c03040400050300000000",
        "010384868808f3863d05c08db7010a808ece1c04040400050300000000",
        "010384868808f3863d05c08db7010a808ece1c05080905f3863db8170501",
        "010384868808f3863d05c08db7010a808ece1c060806c7d5870900",
        "0107ffffffffffffffffff01ac02808081b184e9910301",
    ];
    let byte = |pair: &str| u8::from_str_radix(pair, 16).expect("it is hexadecimal");
    let bytes = |hex: &str| {
        let pairs = (0..hex.len()).step_by(2);
        pairs.map(|at| byte(&hex[at..at + 2])).collect()
    };
    seeds.map(bytes).to_vec()
}

#[test]
fn every_seed_holds_what_must_hold() {
    for seed in corpus() {
        records(&seed);
    }
}

#[test]
fn damaged_records_hold_what_must_hold() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), records);
}
