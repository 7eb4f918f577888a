//! Heads by HTTP/1.

use super::Fate::{self, Refused, Seen};

/// Requests whose head is wrong. `|` stands for a line end,
/// so that others can be seen.
pub(super) const HEADS: &[(&str, Fate)] = &[
    // Two lengths.
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 1|Content-Length: 1||x",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 1|Content-Length: 2||x",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 1, 1||x",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: +1||x",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: -1||x",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 0x1||x",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 1e0||x",
        Refused(400),
    ),
    ("POST / HTTP/1.1|Host: a|Content-Length:||", Refused(400)),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 18446744073709551617||x",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length : 1||x",
        Refused(400),
    ),
    // A length and a coding.
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 4|Transfer-Encoding: chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Content-Length: 4||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 0|Transfer-Encoding: identity||",
        Refused(400),
    ),
    // Codings.
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Transfer-Encoding: chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Transfer-Encoding: x||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked, identity||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked, chunked||0||",
        Refused(501),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: gzip, chunked||0||",
        Refused(501),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: xchunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunkedx||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: identity||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked,||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: ,chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: \"chunked\"||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding:\tchunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked\t||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked\u{b}||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chun\0ked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding:| chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked| , identity||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding\t: chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a| Transfer-Encoding: chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|X: a\nTransfer-Encoding: chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|X: a\rTransfer-Encoding: chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.0|Host: a|Transfer-Encoding: chunked||0||",
        Refused(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|tRANSFER-eNCODING: Chunked||1|x|0||",
        Seen(
            &["transfer-encoding: chunked\r\n", "1\r\nx\r\n0\r\n"],
            &["content-length"],
        ),
    ),
    // Lines.
    ("GET / HTTP/1.1\nHost: a\n\n", Refused(400)),
    ("GET / HTTP/1.1|Host: a\n|", Refused(400)),
    ("GET / HTTP/1.1|Host: a|\n", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X: a\rb||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X: a\r\r\n|", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X: a| b||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X: a|\tb||", Refused(400)),
    ("GET / HTTP/1.1| Host: a||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X : a||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X\t: a||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|: a||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X||", Refused(400)),
    // Characters.
    ("GET / HTTP/1.1|Host: a|X: a\0b||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X: a\u{8}b||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X: a\u{7f}b||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X\0: a||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X(y): a||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|X\u{e9}: a||", Refused(400)),
    // Targets.
    (
        "GET /a%0d%0aX:%20y?%0d%0a HTTP/1.1|Host: a||",
        Seen(&["GET /a%0d%0aX:%20y?%0d%0a HTTP/1.1\r\n"], &["\r\nx:"]),
    ),
    // Browsers send these in a query as they are, but for what could end a text in a page.
    (
        "GET /a?b={c}^d\\`[e]'f' HTTP/1.1|Host: a||",
        Seen(&["GET /a?b={c}^d\\`[e]'f' HTTP/1.1\r\n"], &[]),
    ),
    (
        "GET /a?b=\"c\"&d=<e>?\" HTTP/1.1|Host: a||",
        Seen(&["GET /a?b=%22c%22&d=%3Ce%3E?%22 HTTP/1.1\r\n"], &[]),
    ),
    ("GET /a\tb HTTP/1.1|Host: a||", Refused(400)),
    ("GET /a b HTTP/1.1|Host: a||", Refused(400)),
    ("GET /a\0 HTTP/1.1|Host: a||", Refused(400)),
    ("GET /a#b HTTP/1.1|Host: a||", Refused(400)),
    ("GET a:80 HTTP/1.1|Host: a||", Refused(400)),
    ("GET ftp://a/ HTTP/1.1|Host: a||", Refused(400)),
    ("GET http://u:p@a/ HTTP/1.1|Host: a||", Refused(400)),
    ("GET  / HTTP/1.1|Host: a||", Refused(400)),
    ("GET /  HTTP/1.1|Host: a||", Refused(400)),
    ("GET / HTTP/1.1 |Host: a||", Refused(400)),
    (
        "GET http://b.example/x HTTP/1.1|Host: a||",
        Seen(
            &["GET /x HTTP/1.1\r\n", "host: b.example\r\n"],
            &["host: a\r\n"],
        ),
    ),
    // Hosts.
    ("GET / HTTP/1.1||", Refused(400)),
    ("GET / HTTP/1.1|Host:||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|Host: a||", Refused(400)),
    ("GET / HTTP/1.1|Host: a|Host: b||", Refused(400)),
    ("GET http://a/ HTTP/1.1|Host: a|Host: b||", Refused(400)),
    ("GET / HTTP/1.1|Host: u@a||", Refused(400)),
    ("GET / HTTP/1.1|Host: a,b||", Refused(400)),
    ("GET / HTTP/1.1|Host: a b||", Refused(400)),
    ("GET / HTTP/1.1|Host: a/b||", Refused(400)),
    ("GET / HTTP/1.1|Host: a:80:80||", Refused(400)),
    // Methods and versions.
    ("GE\u{e9}T / HTTP/1.1|Host: a||", Refused(400)),
    ("GET\0 / HTTP/1.1|Host: a||", Refused(400)),
    ("GET: / HTTP/1.1|Host: a||", Refused(400)),
    (" GET / HTTP/1.1|Host: a||", Refused(400)),
    ("CONNECT a:443 HTTP/1.1|Host: a:443||", Refused(501)),
    ("TRACE / HTTP/1.1|Host: a||", Refused(501)),
    ("GET /|", Refused(400)),
    ("GET / HTTP/0.9|Host: a||", Refused(400)),
    ("GET / HTTP/1.2|Host: a||", Refused(400)),
    ("GET / HTTP/2.0|Host: a||", Refused(400)),
    ("GET / HTTP/11|Host: a||", Refused(400)),
    ("GET / http/1.1|Host: a||", Refused(400)),
    ("PRI * HTTP/2.0||SM||", Refused(400)),
    ("|||GET / HTTP/1.1|Host: a||", Refused(400)),
];
