//! Properties that hold for any bytes; called by fuzzers and by the tests.

use crate::protocol::Reply;
use crate::value;

/// Checks the replies of a server: they never cause a panic, further bytes do not change a reply
/// that was read, and states are encoded so that they read the same.
///
/// # Panics
///
/// If a property does not hold.
pub fn replies(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((reply, length))) = Reply::read(rest) {
        assert!(
            0 < length && length <= rest.len(),
            "length within the bytes"
        );
        let alone = Reply::read(&rest[..length]);
        assert_eq!(alone, Ok(Some((reply.clone(), length))), "read alone");
        let cut = Reply::read(&rest[..length - 1]);
        assert_eq!(cut, Ok(None), "a part is no reply yet");
        if let Reply::Value { bytes, .. } = &reply {
            let _ = reply.number();
            if let Some(state) = value::decode(bytes) {
                let again = value::decode(&value::encode(&state));
                assert_eq!(again, Some(state), "written and read");
            }
        }
        rest = &rest[length..];
    }
}
