//! Heads by HTTP/1.

use super::Fate::{self, Rejected, Seen};

/// Requests with an invalid head. `|` stands for a line end, so that other line ends are visible.
pub(super) const HEADS: &[(&str, Fate)] = &[
    // Two lengths.
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 1|Content-Length: 1||x",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 1|Content-Length: 2||x",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 1, 1||x",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: +1||x",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: -1||x",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 0x1||x",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 1e0||x",
        Rejected(400),
    ),
    ("POST / HTTP/1.1|Host: a|Content-Length:||", Rejected(400)),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 18446744073709551617||x",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length : 1||x",
        Rejected(400),
    ),
    // A length and a coding.
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 4|Transfer-Encoding: chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Content-Length: 4||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Content-Length: 0|Transfer-Encoding: identity||",
        Rejected(400),
    ),
    // Codings.
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Transfer-Encoding: chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Transfer-Encoding: x||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked, identity||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked, chunked||0||",
        Rejected(501),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: gzip, chunked||0||",
        Rejected(501),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: xchunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunkedx||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: identity||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked,||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: ,chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: \"chunked\"||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding:\tchunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked\t||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked\u{b}||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chun\0ked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding:| chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked| , identity||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|Transfer-Encoding\t: chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a| Transfer-Encoding: chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|X: a\nTransfer-Encoding: chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|X: a\rTransfer-Encoding: chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.0|Host: a|Transfer-Encoding: chunked||0||",
        Rejected(400),
    ),
    (
        "POST / HTTP/1.1|Host: a|tRANSFER-eNCODING: Chunked||1|x|0||",
        Seen(
            &["transfer-encoding: chunked\r\n", "1\r\nx\r\n0\r\n"],
            &["content-length"],
        ),
    ),
    // Lines.
    ("GET / HTTP/1.1\nHost: a\n\n", Rejected(400)),
    ("GET / HTTP/1.1|Host: a\n|", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|\n", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X: a\rb||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X: a\r\r\n|", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X: a| b||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X: a|\tb||", Rejected(400)),
    ("GET / HTTP/1.1| Host: a||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X : a||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X\t: a||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|: a||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X||", Rejected(400)),
    // Characters.
    ("GET / HTTP/1.1|Host: a|X: a\0b||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X: a\u{8}b||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X: a\u{7f}b||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X\0: a||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X(y): a||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|X\u{e9}: a||", Rejected(400)),
    // Targets.
    (
        "GET /a%0d%0aX:%20y?%0d%0a HTTP/1.1|Host: a||",
        Seen(&["GET /a%0d%0aX:%20y?%0d%0a HTTP/1.1\r\n"], &["\r\nx:"]),
    ),
    // Browsers send these in a query unchanged, except characters that could end a text in a page.
    (
        "GET /a?b={c}^d\\`[e]'f' HTTP/1.1|Host: a||",
        Seen(&["GET /a?b={c}^d\\`[e]'f' HTTP/1.1\r\n"], &[]),
    ),
    (
        "GET /a?b=\"c\"&d=<e>?\" HTTP/1.1|Host: a||",
        Seen(&["GET /a?b=%22c%22&d=%3Ce%3E?%22 HTTP/1.1\r\n"], &[]),
    ),
    ("GET /a\tb HTTP/1.1|Host: a||", Rejected(400)),
    ("GET /a b HTTP/1.1|Host: a||", Rejected(400)),
    ("GET /a\0 HTTP/1.1|Host: a||", Rejected(400)),
    ("GET /a#b HTTP/1.1|Host: a||", Rejected(400)),
    ("GET a:80 HTTP/1.1|Host: a||", Rejected(400)),
    ("GET ftp://a/ HTTP/1.1|Host: a||", Rejected(400)),
    ("GET http://u:p@a/ HTTP/1.1|Host: a||", Rejected(400)),
    ("GET  / HTTP/1.1|Host: a||", Rejected(400)),
    ("GET /  HTTP/1.1|Host: a||", Rejected(400)),
    ("GET / HTTP/1.1 |Host: a||", Rejected(400)),
    (
        "GET http://b.example/x HTTP/1.1|Host: a||",
        Seen(
            &["GET /x HTTP/1.1\r\n", "host: b.example\r\n"],
            &["host: a\r\n"],
        ),
    ),
    // Hosts.
    ("GET / HTTP/1.1||", Rejected(400)),
    ("GET / HTTP/1.1|Host:||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|Host: a||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a|Host: b||", Rejected(400)),
    ("GET http://a/ HTTP/1.1|Host: a|Host: b||", Rejected(400)),
    ("GET / HTTP/1.1|Host: u@a||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a,b||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a b||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a/b||", Rejected(400)),
    ("GET / HTTP/1.1|Host: a:80:80||", Rejected(400)),
    // Methods and versions.
    ("GE\u{e9}T / HTTP/1.1|Host: a||", Rejected(400)),
    ("GET\0 / HTTP/1.1|Host: a||", Rejected(400)),
    ("GET: / HTTP/1.1|Host: a||", Rejected(400)),
    (" GET / HTTP/1.1|Host: a||", Rejected(400)),
    ("CONNECT a:443 HTTP/1.1|Host: a:443||", Rejected(501)),
    ("TRACE / HTTP/1.1|Host: a||", Rejected(501)),
    ("GET /|", Rejected(400)),
    ("GET / HTTP/0.9|Host: a||", Rejected(400)),
    ("GET / HTTP/1.2|Host: a||", Rejected(400)),
    ("GET / HTTP/2.0|Host: a||", Rejected(400)),
    ("GET / HTTP/11|Host: a||", Rejected(400)),
    ("GET / http/1.1|Host: a||", Rejected(400)),
    ("PRI * HTTP/2.0||SM||", Rejected(400)),
    ("|||GET / HTTP/1.1|Host: a||", Rejected(400)),
];
