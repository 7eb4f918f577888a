//! Invariants that hold for any bytes; called by fuzzers and by the tests.

use crate::row::{ROW_BYTES_MAX, Row};

/// Decodes `data` as a row of history.
///
/// # Panics
///
/// If a row becomes too long, or changes its counts in a round trip. Any other panic is a defect,
/// too.
pub fn rows(data: &[u8]) {
    let Ok((figures, room)) = Row::decode(data) else {
        return;
    };
    let row = Row {
        figures,
        room,
        ..Row::default()
    };
    let bytes = row.encode();
    assert!(bytes.len() <= ROW_BYTES_MAX, "{} bytes", bytes.len());
    let (again, same_room) = Row::decode(&bytes).expect("ours can be read");
    assert_eq!(same_room, room, "another room");
    assert_eq!(again.announced, figures.announced, "other announcements");
    assert_eq!(
        again.origin.statuses, figures.origin.statuses,
        "other statuses"
    );
}
