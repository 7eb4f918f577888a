//! Damaged records of overrides: the parser never panics, and a record that it reads is the same
//! when it is written and read again.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-config --test it fuzz_overrides` runs longer;
//! `ANTEROOM_FUZZ_SEED=n` sets another seed, or repeats a failure.

use anteroom_config::fuzz::overrides;
use anteroom_testkit::{Effort, Field, Language, fuzz};

const LANGUAGE: Language<'_> = Language {
    pieces: &[
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"",
        b"\\",
        b"null",
        b"true",
        b"false",
        b"0",
        b"-1",
        b"300",
        b"1e400",
        b"9999999999999999999999",
        b"1.5",
        b"\"form\":1",
        b"\"version\":7",
        b"\"values\":{",
        b"\"pause\":{\"message\":\"x\",\"since\":1}",
        b"\"message\":\"x\"",
        b"\"newest\":",
        b"\"entries\":[",
        b"\"total_active_users\":",
        b"\"session_duration\":\"2m\"",
        b"\"opens_at\":\"none\"",
        b"\"opens_at\":\"2030-01-31T10:00:00.25+01:00\"",
        b"\"refresh_interval\":\"none\"",
        b"\"draw\":true",
        b"\"queueing_method\":\"random\"",
        b"\"curve_factor\":1.000001",
        b"\"origin\":\"http://a\"",
        b"\n",
        b"\xff",
        b"\\u0000",
        b"\xc3\xa9",
    ],
    field: Some(Field {
        begins_after: b'"',
        ends_before: b'"',
    }),
};

fn corpus() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 5] = [
        b"{\"total_active_users\":300,\"session_duration\":\"2m\",\"pacing\":false}",
        b"{\"opens_at\":\"2030-01-31T10:00:00Z\",\"draw\":true,\"curve_factor\":1.5}",
        b"{\"form\":1,\"version\":3,\"values\":{\"queue_all\":true},\"pause\":{\"message\":\"x\",\
          \"since\":5},\"message\":\"y\",\"newest\":{\"version\":3,\"at\":5,\
          \"who\":{\"token\":\"t\",\"user\":null,\"address\":\"127.0.0.1\"},\
          \"what\":\"queue-all\",\"changes\":[]}}",
        b"{\"form\":1,\"entries\":[{\"version\":1,\"at\":5,\
          \"who\":{\"token\":\"t\",\"address\":\"a\"},\
          \"what\":\"open\",\"changes\":[{\"key\":\"a\",\"before\":1,\"after\":null}]}],\
          \"dropped\":2}",
        b"{\"refresh_interval\":\"none\",\"position_grace\":\"1h30m\",\
          \"queueing_status_code\":503}",
    ];
    seeds.into_iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn every_seed_keeps_the_properties() {
    for seed in corpus() {
        overrides(&seed);
    }
}

#[test]
fn damaged_records_and_values_keep_the_properties() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), overrides);
}
