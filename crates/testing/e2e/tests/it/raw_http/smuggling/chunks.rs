//! Bodies in chunks, by HTTP/1.

use super::Fate::{self, Rejected, Seen};

/// Bodies in chunks; the head is fine.
pub(super) const CHUNKS: &[(&str, Fate)] = &[
    ("0x1|x|0||", Rejected(400)),
    ("+1|x|0||", Rejected(400)),
    ("-1|x|0||", Rejected(400)),
    (" 1|x|0||", Rejected(400)),
    ("1 |x|0||", Rejected(400)),
    ("1\t|x|0||", Rejected(400)),
    ("|x|0||", Rejected(400)),
    ("g|x|0||", Rejected(400)),
    ("FFFFFFFFFFFFFFFF|x|0||", Rejected(400)),
    ("10000000000000001|x|0||", Rejected(400)),
    ("00000000000000001|x|0||", Rejected(400)),
    ("1\nx|0||", Rejected(400)),
    ("1\rx|0||", Rejected(400)),
    ("1|x0||", Rejected(400)),
    ("1|x\n0||", Rejected(400)),
    ("1|xy|0||", Rejected(400)),
    ("1;a\nx|0||", Rejected(400)),
    ("1;a\rb|x|0||", Rejected(400)),
    ("1;a\0|x|0||", Rejected(400)),
    ("1;a=\"b\n\"|x|0||", Rejected(400)),
    ("1|x|0|\n", Rejected(400)),
    ("1|x|0|X: a\n|", Rejected(400)),
    ("1|x|0| X: a||", Rejected(400)),
    ("1|x|0|X : a||", Rejected(400)),
    ("1|x|0|Content-Length: 5||", Rejected(400)),
    ("1|x|0|Transfer-Encoding: chunked||", Rejected(400)),
    ("1|x|0|Host: b||", Rejected(400)),
    ("1|x|0|Cookie: a=b||", Rejected(400)),
    ("1|x|0|Authorization: a||", Rejected(400)),
    ("1;a=b|x|0||", Seen(&["\r\n\r\n1\r\nx\r\n0\r\n"], &[";a"])),
    (
        "1|x|0|Anteroom-Seat-Ends: 1|X-Forwarded-For: 1.2.3.4||",
        Seen(&["\r\n\r\n1\r\nx\r\n0\r\n"], &["anteroom-seat", "1.2.3.4"]),
    ),
];
