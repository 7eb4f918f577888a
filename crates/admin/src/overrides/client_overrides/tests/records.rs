//! Encoding of records in a store.

use anteroom_config::overrides::Log;

use super::*;

#[test]
fn a_record_round_trips_and_anything_else_is_damaged() {
    let file = file(&[API]);
    let record = after(
        &[set("api", json!({ "key": "gold", "limit": "1/s" }))],
        &file,
    );
    assert_eq!(LimitOverrides::decode(&record.encode()), Ok(record.clone()));
    let mut log = Log::default();
    assert!(log.add(record.newest().unwrap()));
    for bytes in [&b""[..], b"{}", b"\xff", b"[1]"] {
        assert_eq!(
            LimitOverrides::decode(bytes),
            Err(UnreadableOverrides::Damaged)
        );
    }
    let later = b"{\"form\":2,\"version\":1}";
    assert_eq!(
        LimitOverrides::decode(later),
        Err(UnreadableOverrides::OtherForm(2))
    );
    let more = b"{\"form\":1,\"version\":3,\"weather\":\"fine\"}";
    assert_eq!(LimitOverrides::decode(more).unwrap().version, 3);
}
