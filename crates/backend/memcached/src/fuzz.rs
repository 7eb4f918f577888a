//! What must hold for any bytes whatever; called by fuzzers and by the tests.

use crate::protocol::Reply;
use crate::value;

/// What a server sends: none of it makes this program fail, more of it does not change what was
/// read already, and states that can be read are written down as ones that read the same.
///
/// # Panics
///
/// If it does not hold.
pub fn replies(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((reply, length))) = Reply::read(rest) {
        assert!(0 < length && length <= rest.len(), "an answer of its bytes");
        let alone = Reply::read(&rest[..length]);
        assert_eq!(alone, Ok(Some((reply.clone(), length))), "read alone");
        let cut = Reply::read(&rest[..length - 1]);
        assert_eq!(cut, Ok(None), "a part of it is none yet");
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
