//! Records as stores keep them.

use anteroom_config::overrides::Log;

use super::*;

#[test]
fn a_record_is_read_back_and_anything_else_is_damaged() {
    let file = file(&[API]);
    let orders = after(
        &[set("api", json!({ "key": "gold", "limit": "1/s" }))],
        &file,
    );
    assert_eq!(LimitOverrides::decode(&orders.encode()), Ok(orders.clone()));
    let mut log = Log::default();
    assert!(log.add(orders.newest().unwrap()));
    for bytes in [
        &b""[..],
        b"{}",
        b"{\"form\":2,\"version\":1}",
        b"\xff",
        b"[1]",
    ] {
        assert_eq!(LimitOverrides::decode(bytes), Err(DamagedOverrides));
    }
    let more = b"{\"form\":1,\"version\":3,\"weather\":\"fine\"}";
    assert_eq!(LimitOverrides::decode(more).unwrap().version, 3);
}
