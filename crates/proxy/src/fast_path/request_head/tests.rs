//! Tests of which requests are mine, and of what is sent on.

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::forwarded::Scheme;

const LIMITS: HeadLimits = HeadLimits {
    headers: 64,
    target_bytes: 1_000,
    body_bytes: 100,
};

/// Returns what the origin gets of a head; `None` if the head is not mine.
fn sent_on(head: &str) -> Option<String> {
    let mut lines = no_lines();
    let bytes = head.as_bytes();
    if HeadSearch::default().look(bytes) != HeadEnd::At(bytes.len()) {
        return None;
    }
    let head = RequestHead::read(bytes, &mut lines, LIMITS).ok()?;
    let peer = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    let client = Client {
        address: peer,
        scheme: Scheme::Https,
        host: HeaderValue::from_str(head.host).unwrap(),
        peer,
        has_trusted_peer: false,
    };
    let mut out = Vec::new();
    let about = lines_about(&client, head.headers());
    head.write(&mut out, (&client, &about), &TrustedProxies::default());
    Some(String::from_utf8(out).unwrap())
}

#[track_caller]
fn check(lines: &str, expected: Option<&str>) {
    let head = format!("GET /a?b=1 HTTP/1.1\r\nHost: shop.example\r\n{lines}\r\n");
    let found = sent_on(&head);
    let whole = expected.map(|expected| {
        format!(
            "GET /a?b=1 HTTP/1.1\r\nhost: shop.example\r\n{expected}\
             forwarded: for=192.0.2.7;host=\"shop.example\";proto=https\r\n\
             x-forwarded-for: 192.0.2.7\r\n\
             x-forwarded-proto: https\r\nx-forwarded-host: shop.example\r\n\
             via: 1.1 anteroom\r\nanteroom-loop: {}\r\n",
            std::str::from_utf8(loops::mark_bytes()).unwrap()
        )
    });
    assert_eq!(found, whole, "{lines:?}");
}

#[test]
fn a_plain_head_is_sent_on_without_this_hop() {
    check("", Some(""));
    check("Accept:  text/html \r\n", Some("Accept: text/html\r\n"));
    check(
        "Connection: Keep-Alive\r\nVia: 1.1 a\r\n",
        Some("Via: 1.1 a\r\n"),
    );
    check("X-Empty:\r\n", Some("X-Empty: \r\n"));
}

#[test]
fn claims_about_the_client_and_our_cookies_are_left_out() {
    check(
        "X-Forwarded-For: 1.2.3.4\r\nX-Real-IP: 5.6.7.8\r\n",
        Some(""),
    );
    check(
        "Forwarded: for=1.2.3.4\r\nX-FORWARDED-Port: 1\r\n",
        Some(""),
    );
    check(
        "Cookie: a=1; __anteroom_x=t; b=2\r\n",
        Some("Cookie: a=1; b=2\r\n"),
    );
    check(
        "Cookie: __anteroom_x=t\r\ncookie: c=3\r\n",
        Some("cookie: c=3\r\n"),
    );
    check("Cookie: __anteroom_x=t; a=1\r\n", Some("Cookie: a=1\r\n"));
}

#[test]
fn what_readers_could_read_in_two_ways_is_not_mine() {
    for lines in [
        "Content-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Expect: 100-continue\r\n",
        "Upgrade: websocket\r\n",
        "Connection: upgrade\r\n",
        "Connection: close, x\r\n",
        "TE: trailers\r\n",
        "Trailer: x\r\n",
        "Keep-Alive: 5\r\n",
        "Proxy: x\r\n",
        "Proxy-Authorization: x\r\n",
        "Anteroom-Visitor: 1\r\n",
        "Anteroom-Loop: 1\r\n",
        "Host: other.example\r\n",
        "content_length: 5\r\n",
        "x_forwarded_for: 1.2.3.4\r\n",
        "a: b\r\n c\r\n",
        "a : b\r\n",
        ": b\r\n",
        "a: b\rc\r\n",
        "a: b\0\r\n",
        "a: b\n",
    ] {
        check(lines, None);
    }
    for head in [
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "get / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\tHTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\\a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a[ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /?\"<> HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\u{e4} HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:b:c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
    ] {
        assert_eq!(sent_on(head), None, "{head:?}");
    }
    assert!(sent_on("GET /?a[]=1 HTTP/1.1\r\nHost: a:8080\r\n\r\n").is_some());
    assert!(sent_on("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").is_some());
}

#[test]
fn a_short_body_of_a_stated_length_is_mine() {
    let with = |method: &str, lines: &str| {
        sent_on(&format!("{method} /a HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
    };
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let text = with(method, "content-LENGTH:  100 \r\nA: b\r\n").unwrap();
        let start = format!("{method} /a HTTP/1.1\r\nhost: a\r\nA: b\r\ncontent-length: 100\r\n");
        assert!(text.starts_with(&start), "{text}");
        assert!(with(method, "Content-Length: 0\r\n").is_some());
    }
    for lines in [
        "",
        "Content-Length: 101\r\n",
        "Content-Length: \r\n",
        "Content-Length: +1\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 01\r\n",
        "Content-Length: 1 1\r\n",
        "Content-Length: 1, 1\r\n",
        "Content-Length: 0x1\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n",
        "Content-Length: 18446744073709551617\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 1\r\nExpect: 100-continue\r\n",
    ] {
        assert_eq!(with("POST", lines), None, "{lines:?}");
    }
}

#[test]
fn limits_make_a_head_not_mine() {
    let many = "a: b\r\n".repeat(HEADERS_MAX);
    check(&many, None);
    let long = "x".repeat(1_000);
    assert_eq!(
        sent_on(&format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n")),
        None
    );
    let name = "x".repeat(NAME_MAX + 1);
    check(&format!("{name}: 1\r\n"), None);
}

#[test]
fn a_start_that_is_not_mine_is_known_before_the_end_of_the_head() {
    for begun in ["", "G", "GET", "GET /x", "HEAD ", "HEAD /", "P", "PATCH /"] {
        assert!(may_begin(begun.as_bytes()), "{begun:?}");
    }
    for begun in ["Q", "PAST", "GETS", "GET  /", "GET h", "HEAT", "get"] {
        assert!(!may_begin(begun.as_bytes()), "{begun:?}");
    }
    assert!(!may_begin(b"\x16\x03\x01"), "TLS");
}

#[test]
fn the_chain_of_a_trusted_proxy_is_continued() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\n\
                x-real-ip: 1.2.3.4\r\nForwarded: for=x\r\nX-Forwarded-For: 192.0.2.8\r\n\
                X-Forwarded-Proto: https\r\n\r\n";
    let mut lines = no_lines();
    let head = RequestHead::read(head.as_bytes(), &mut lines, LIMITS).unwrap();
    let trusted = TrustedProxies::new(["192.0.2.0/24".parse().unwrap()]);
    let peer = "192.0.2.7:80".parse().unwrap();
    let host = HeaderValue::from_static("a");
    let client = Client::of(peer, Scheme::Http, host, head.headers(), &trusted);
    assert_eq!(client.address, IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4)));
    let about = lines_about(&client, head.headers());
    let mut out = Vec::new();
    head.write(&mut out, (&client, &about), &trusted);
    let text = String::from_utf8(out).unwrap();
    let expected = "GET / HTTP/1.1\r\nhost: a\r\nx-real-ip: 1.2.3.4\r\nX-Forwarded-Proto: https\r\n\
                    forwarded: for=x, for=192.0.2.7;host=\"a\";proto=https\r\n\
                    x-forwarded-for: 1.2.3.4, 192.0.2.8, 192.0.2.7\r\nx-forwarded-host: a\r\n\
                    via: 1.1 anteroom\r\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn an_ipv6_address_is_quoted() {
    let peer: IpAddr = "2001:db8::1".parse().unwrap();
    let client = Client {
        address: peer,
        scheme: Scheme::Http,
        host: HeaderValue::from_static("a"),
        peer,
        has_trusted_peer: false,
    };
    let text = String::from_utf8(lines_about(&client, HeaderView::of_lines(&[])).into()).unwrap();
    assert!(
        text.contains("forwarded: for=\"[2001:db8::1]\";host=\"a\";proto=http\r\n"),
        "{text}"
    );
}

#[test]
fn a_line_without_a_carriage_return_is_not_mine() {
    let read = |bytes: &str| {
        let HeadEnd::At(end) = HeadSearch::default().look(bytes.as_bytes()) else {
            panic!("no end: {bytes:?}");
        };
        let mut lines = no_lines();
        RequestHead::read(&bytes.as_bytes()[..end], &mut lines, HeadLimits::NONE).map(|_| ())
    };
    let head = "GET / HTTP/1.1\r\nHost: a\r\nB: 1\r\n\r\n";
    assert_eq!(read(head), Ok(()));
    assert_eq!(read(&format!("{head}GET / HTTP/1.1\r\n")), Ok(()));
    for (line_end, _) in head.match_indices("\r\n") {
        let mut odd = head.to_owned();
        odd.remove(line_end);
        // The end is then the next one, or the empty line is part of what follows.
        odd.push_str("GET / HTTP/1.1\r\nHost: b\r\n\r\n");
        assert_eq!(read(&odd), Err(FastPathRequest::Header), "{odd:?}");
    }
    for before in ["\r\n", "\n", "\r\n\r\n", " "] {
        let odd = format!("{before}{head}");
        assert_eq!(read(&odd), Err(FastPathRequest::Header), "{odd:?}");
    }
}

proptest! {
    /// The end of a head is found at the same place, however its bytes arrive. Odd lines before it
    /// are found at the latest when it is read.
    #[test]
    fn pieces_of_a_head_end_where_the_whole_ends(
        text in "[a\r\n: ]{0,40}(\r\n\r\n)?[a\r\n]{0,6}",
        cuts in proptest::collection::vec(0_usize..50, 0..4),
    ) {
        let bytes = text.as_bytes();
        let whole = HeadSearch::default().look(bytes);
        let mut search = HeadSearch::default();
        let mut ends: Vec<usize> = cuts.into_iter().filter(|cut| *cut < bytes.len()).collect();
        ends.push(bytes.len());
        ends.sort_unstable();
        let mut found = HeadEnd::Later;
        for end in ends {
            found = search.look(&bytes[..end]);
            if found != HeadEnd::Later {
                break;
            }
        }
        if let (HeadEnd::Odd, HeadEnd::At(end)) = (found, whole) {
            let mut lines = no_lines();
            let read = RequestHead::read(&bytes[..end], &mut lines, HeadLimits::NONE);
            prop_assert!(read.is_err());
        } else {
            prop_assert_eq!(found, whole);
        }
    }
}
