//! Damaged records of the rooms of the API: the parser never panics, and a record that it reads is
//! the same when it is written and read again.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-config --test it fuzz_api_rooms` runs longer;
//! `ANTEROOM_FUZZ_SEED=n` sets another seed, or repeats a failure.

use anteroom_config::fuzz::api_rooms;
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
        b"0",
        b"-1",
        b"300",
        b"9999999999999999999999",
        b"1.5",
        b"\"form\":1",
        b"\"version\":7",
        b"\"rooms\":{\"a\":{\"rev\":1,\"at\":5,\"room\":{\"createdAt\":5,\"values\":{",
        b"\"name\":\"sale\"",
        b"\"host\":\"shop.example\"",
        b"\"path\":\"/sale\"",
        b"\"additional_routes\":[{\"host\":\"www.example\"}]",
        b"\"total_active_users\":5",
        b"\"new_users_per_minute\":5",
        b"\"events\":[{\"id\":\"e\",\"createdAt\":1,\"modifiedAt\":1,\"values\":{}}]",
        b"\"rules\":[{\"id\":\"r\",\"version\":1,\"modifiedAt\":1,\"expression\":\"x\",\
          \"enabled\":true}]",
        b"\"page\":{\"logo\":\"x\"}",
        b"\"custom_page_file\":\"x\"",
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
    let seeds: [&[u8]; 3] = [
        b"{\"name\":\"sale\",\"host\":\"shop.example\",\"total_active_users\":5,\
          \"new_users_per_minute\":5,\"session_duration\":\"2m\",\"page\":{\"title\":\"x\"}}",
        b"{\"form\":1,\"version\":3,\"rooms\":{\"a\":{\"rev\":2,\"at\":9,\"room\":{\
          \"createdAt\":5,\"site\":\"shop\",\"values\":{\"name\":\"sale\",\
          \"host\":\"shop.example\",\"total_active_users\":5,\"new_users_per_minute\":5},\
          \"events\":[{\"id\":\"e\",\"createdAt\":1,\"modifiedAt\":1,\"values\":{\"name\":\"x\",\
          \"event_start_time\":\"2030-01-01T10:00:00Z\"}}]}},\
          \"b\":{\"rev\":1,\"at\":4}},\"newest\":null,\"later\":[1]}",
        b"{\"form\":1,\"version\":1,\"rooms\":{\"a\":{\"rev\":1,\"at\":1,\"room\":{\
          \"createdAt\":1,\"values\":{\"name\":\"x\",\"host\":\"h\"}}},\"b\":{\"rev\":1,\"at\":2,\
          \"room\":{\"createdAt\":1,\"values\":{\"name\":\"x\",\"host\":\"h\"}}}}}",
    ];
    seeds.into_iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn every_seed_keeps_the_properties() {
    for seed in corpus() {
        api_rooms(&seed);
    }
}

#[test]
fn damaged_records_and_rooms_keep_the_properties() {
    fuzz(Effort::from_environment(), &LANGUAGE, &corpus(), api_rooms);
}
