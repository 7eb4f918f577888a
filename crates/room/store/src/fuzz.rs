//! Invariants that hold for any bytes; called by fuzzers and by the tests.

use crate::wire::ledger::left_request;

/// Decodes `data` as a request that was left beside a record.
///
/// # Panics
///
/// If a request changes in a round trip. Any other panic is a defect, too.
pub fn left_requests(data: &[u8]) {
    let Some(found) = left_request::decode(data) else {
        return;
    };
    // Numbers may be written longer than necessary; ours are not.
    let bytes = left_request::encode(&found).expect("ours is no longer");
    assert_eq!(left_request::decode(&bytes), Some(found), "another request");
}
