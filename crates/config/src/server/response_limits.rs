//! Keys for the size of the head of an origin's response.

use crate::kind::Whole;
use crate::reader::Key;

pub(super) const ORIGIN_HEAD_BYTES: Key<Whole<usize>> = Key {
    name: "origin_head_bytes",
    kind: Whole {
        min: 8_192,
        max: 1_048_576,
        note: "",
    },
    default: Some("65536"),
};
pub(super) const ORIGIN_HEADERS: Key<Whole<usize>> = Key {
    name: "origin_headers",
    kind: Whole {
        min: 10,
        max: 1_000,
        note: "",
    },
    default: Some("100"),
};
