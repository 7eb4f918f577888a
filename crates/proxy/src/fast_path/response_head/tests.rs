//! Tests of heads of responses, line by line and as a map.

use super::*;

fn read_head(bytes: &str, is_head: bool) -> Result<ResponseHead, NoHead> {
    let reading = Reading {
        is_head,
        headers_max: 100,
        makes_map: false,
    };
    read(bytes.as_bytes(), reading, Vec::new()).map_err(|(no_head, _)| no_head)
}

/// Returns the lines for the client, the framing, and whether the connection stays.
#[track_caller]
fn lines(head: &str) -> (String, Framing, bool) {
    let read = read_head(head, false).unwrap();
    assert_eq!(read.length, head.len());
    let Form::Lines(lines) = read.form else {
        panic!("{head:?} is not plain");
    };
    let lines = String::from_utf8(lines).unwrap();
    (lines, read.framing, read.keeps_alive)
}

const DATE: &str = "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n";

#[test]
fn a_plain_head_is_sent_line_by_line() {
    let head = format!("HTTP/1.1 200 Fine\r\n{DATE}X: a  b\r\nContent-Length: 05\r\n\r\n");
    let expected =
        format!("HTTP/1.1 200 Fine\r\n{DATE}X: a  b\r\ncontent-length: 5\r\nvia: 1.1 anteroom\r\n");
    assert_eq!(lines(&head), (expected, Framing::Length(5), true));
    let head = format!("HTTP/1.1 404\r\n{DATE}Transfer-Encoding: Chunked\r\n\r\n");
    let expected =
        format!("HTTP/1.1 404 \r\n{DATE}transfer-encoding: chunked\r\nvia: 1.1 anteroom\r\n");
    assert_eq!(lines(&head), (expected, Framing::Chunks, true));
}

#[test]
fn a_missing_date_is_added() {
    let (lines, ..) = lines("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert!(lines.contains("\r\ndate: "), "{lines}");
}

#[test]
fn the_end_of_a_body_is_clear_or_the_head_is_broken() {
    let framing = |headers: &str| {
        let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
        read_head(&head, false).map(|head| head.framing).ok()
    };
    assert_eq!(framing(""), Some(Framing::UntilClose));
    assert_eq!(
        framing("Content-Length: 5, 5\r\n"),
        Some(Framing::Length(5))
    );
    let twice = "Content-Length: 5\r\nContent-Length: 5\r\n";
    assert_eq!(framing(twice), Some(Framing::Length(5)));
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    assert_eq!(framing(both), Some(Framing::Chunks));
    for broken in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5x\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Content-Length:\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n",
    ] {
        assert_eq!(framing(broken), None, "{broken:?}");
    }
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(matches!(read_head(old, false), Err(NoHead::Broken)));
}

#[test]
fn responses_without_a_body_end_with_their_head() {
    let framing = |head: &str, is_head| read_head(head, is_head).unwrap().framing;
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(framing(length, true), Framing::None);
    for status in ["204 No Content", "304 Not Modified"] {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(framing(&head, false), Framing::None);
        let chunks = format!("HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(framing(&chunks, false), Framing::None);
    }
    let read = read_head(length, true).unwrap();
    let Form::Lines(lines) = read.form else {
        panic!("it is plain");
    };
    let lines = String::from_utf8(lines).unwrap();
    assert!(
        lines.contains("content-length: 5\r\n"),
        "that of a GET: {lines}"
    );
    let none = read_head(
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        false,
    )
    .unwrap();
    let Form::Lines(lines) = none.form else {
        panic!("it is plain");
    };
    assert!(!String::from_utf8(lines).unwrap().contains("content-length"));
}

#[test]
fn what_the_gateway_has_to_change_becomes_a_map() {
    for header in [
        "Set-Cookie: __anteroom_x=1",
        "Set-Cookie:  = __anteroom_x=1",
        "Anteroom-Command: revoke",
        "CF-Waiting-Room-Command: revoke",
        "Connection: x, keep-alive",
        "Keep-Alive: timeout=5",
        "Proxy-Authenticate: x",
        "Upgrade: h2",
        "TE: x",
        "Trailer: x",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{header}\r\nContent-Length: 0\r\n\r\n");
        let read = read_head(&head, false).unwrap();
        assert!(matches!(read.form, Form::Map(_)), "{header}");
    }
    let head = "HTTP/1.1 200 OK\r\nConnection: x\r\nX: 1\r\nSet-Cookie: a=1\r\n\
                Set-Cookie: __anteroom_x=1\r\nContent-Length: 0\r\n\r\n";
    let Form::Map(response) = read_head(head, false).unwrap().form else {
        panic!("it has a cookie of ours");
    };
    let names: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["set-cookie", "content-length", "via"]);
    assert_eq!(response.headers()["set-cookie"], "a=1");
}

#[test]
fn a_connection_stays_only_if_the_origin_says_so() {
    let keeps = |head: &str| read_head(head, false).unwrap().keeps_alive;
    assert!(keeps("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert!(keeps(
        "HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n"
    ));
    assert!(!keeps(
        "HTTP/1.1 200 OK\r\nConnection: CLOSE\r\nContent-Length: 0\r\n\r\n"
    ));
    assert!(!keeps(
        "HTTP/1.1 200 OK\r\nConnection: x, close\r\nContent-Length: 0\r\n\r\n"
    ));
    assert!(!keeps(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"
    ));
}

#[test]
fn interim_responses_are_skipped_and_nobody_switches_protocols() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
    assert!(
        matches!(read_head(early, false), Err(NoHead::Interim(length)) if length == early.len())
    );
    let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    assert!(matches!(read_head(switch, false), Err(NoHead::Broken)));
    assert!(matches!(
        read_head("HTTP/1.1 200 OK\r\n", false),
        Err(NoHead::Later)
    ));
    assert!(matches!(
        read_head("HTP/1.1 200 OK\r\n\r\n", false),
        Err(NoHead::Broken)
    ));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    assert!(matches!(read_head(&many, false), Err(NoHead::TooLarge)));
}
