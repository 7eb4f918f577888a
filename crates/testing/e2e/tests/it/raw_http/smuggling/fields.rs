//! Fields by HTTP/2.

use crate::raw_http::http2_wire::{End, Field};

pub(super) const METHOD: Field = (b":method", b"GET");
pub(super) const SCHEME: Field = (b":scheme", b"https");
pub(super) const PATH: Field = (b":path", b"/");
pub(super) const AUTHORITY: Field = (b":authority", b"a");

/// Requests by HTTP/2, and how they end.
pub(super) const HTTP2: &[(&[Field], End)] = &[
    (&[METHOD, METHOD, SCHEME, PATH, AUTHORITY], End::Reset(1)),
    (&[METHOD, SCHEME, PATH, PATH, AUTHORITY], End::Reset(1)),
    (&[METHOD, SCHEME, PATH, AUTHORITY, AUTHORITY], End::Reset(1)),
    (
        &[METHOD, SCHEME, AUTHORITY, (b"x", b"1"), PATH],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b":x", b"1")],
        End::GoAway(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b":status", b"200")],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"X", b"1")],
        End::GoAway(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"x y", b"1")],
        End::GoAway(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"x\r\ny", b"1")],
        End::GoAway(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"x", b"1\r\ny: 2")],
        End::GoAway(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"x", b"1\n")],
        End::GoAway(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"x", b"1\0")],
        End::GoAway(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"connection", b"x")],
        End::Reset(1),
    ),
    (
        &[
            METHOD,
            SCHEME,
            PATH,
            AUTHORITY,
            (b"transfer-encoding", b"chunked"),
        ],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"upgrade", b"websocket")],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"keep-alive", b"1")],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"proxy-connection", b"x")],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"te", b"gzip")],
        End::Reset(1),
    ),
    (&[METHOD, SCHEME, AUTHORITY], End::Reset(1)),
    (&[METHOD, SCHEME, (b":path", b""), AUTHORITY], End::Reset(1)),
    (
        &[METHOD, SCHEME, (b":path", b"a"), AUTHORITY],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, (b":path", b"/\r\nx: y"), AUTHORITY],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, (b":path", b"/ HTTP/1.1"), AUTHORITY],
        End::Reset(1),
    ),
    (&[METHOD, PATH, AUTHORITY], End::Reset(1)),
    (
        &[METHOD, (b":scheme", b"ftp"), PATH, AUTHORITY],
        End::Answered(400),
    ),
    (&[SCHEME, PATH, AUTHORITY], End::Reset(1)),
    (
        &[(b":method", b"G T"), SCHEME, PATH, AUTHORITY],
        End::GoAway(1),
    ),
    (
        &[(b":method", b"TRACE"), SCHEME, PATH, AUTHORITY],
        End::Answered(501),
    ),
    (&[(b":method", b"CONNECT"), AUTHORITY], End::Answered(501)),
    (&[METHOD, SCHEME, PATH], End::Answered(400)),
    // Browsers write %22. Only HTTP/1 has a way around the parser.
    (
        &[METHOD, SCHEME, (b":path", b"/?a=\"b\""), AUTHORITY],
        End::Reset(1),
    ),
    (&[METHOD, SCHEME, PATH, (b":authority", b"")], End::Reset(1)),
    (
        &[METHOD, SCHEME, PATH, (b":authority", b"u@a")],
        End::Answered(400),
    ),
    (
        &[METHOD, SCHEME, PATH, (b":authority", b"a b")],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"host", b"b")],
        End::Answered(400),
    ),
    (
        &[
            METHOD,
            SCHEME,
            PATH,
            AUTHORITY,
            (b"host", b"a"),
            (b"host", b"a"),
        ],
        End::Answered(400),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"content-length", b"1")],
        End::Reset(1),
    ),
    (
        &[METHOD, SCHEME, PATH, AUTHORITY, (b"content-length", b"x")],
        End::Reset(1),
    ),
];
