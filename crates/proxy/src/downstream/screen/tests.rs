//! Tests with requests that are split at every position, valid and invalid.

use super::*;

/// Reads `text` in two pieces, split at every position; returns the position of its violation.
#[track_caller]
fn look(text: &[u8]) -> Option<usize> {
    let mut screen = Screen::new();
    let whole = screen.look(text).err().map(|violation| violation.at);
    let heads = screen.heads();
    for cut in 0..=text.len() {
        let (first, second) = text.split_at(cut);
        let mut screen = Screen::new();
        let found = screen.look(first).err().map(|violation| violation.at);
        let second = screen
            .look(second)
            .err()
            .map(|violation| cut + violation.at);
        let shown = String::from_utf8_lossy(text);
        // After the first violation every call is one.
        assert_eq!(found.or(second), whole, "{shown:?} cut at {cut}");
        if whole.is_none() {
            assert_eq!(screen.heads(), heads, "{shown:?} cut at {cut}");
        }
    }
    whole
}

#[track_caller]
fn check_fine(text: &str, heads: u64, phase: RequestPhase) {
    assert_eq!(look(text.as_bytes()), None, "{text:?}");
    let mut screen = Screen::new();
    screen.look(text.as_bytes()).unwrap();
    assert_eq!((screen.heads(), screen.phase()), (heads, phase), "{text:?}");
}

/// Fails unless the last byte is the violation.
#[track_caller]
fn check_wrong(text: &[u8]) {
    let shown = String::from_utf8_lossy(text);
    assert_eq!(look(text), Some(text.len() - 1), "{shown:?}");
}

#[test]
fn the_end_of_each_request_is_found() {
    let get = "GET /?a=%0d%0ab HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX:\t a\tb \u{e9}\r\n\r\n";
    check_fine(get, 1, RequestPhase::Between);
    check_fine(&format!("\r\n\r\n{get}\r\n{get}"), 2, RequestPhase::Between);
    check_fine("OPTIONS * HTTP/1.0\r\n\r\n", 1, RequestPhase::Between);
    let fixed = "POST / HTTP/1.1\r\ncontent-LENGTH:  5 \r\n\r\n\n\r\0\n\n";
    check_fine(&format!("{fixed}{get}"), 2, RequestPhase::Between);
    let chunks = "POST / HTTP/1.1\r\ntransfer-ENCODING: Chunked\r\n\r\n\
         1\r\n\n\r\n0000000000000002;a=\"b c\"\r\n\r\n\r\n0\r\nX-Sum: 1\r\n\r\n";
    check_fine(&format!("{chunks}{get}"), 2, RequestPhase::Between);
    check_fine("GET / HT", 0, RequestPhase::Head);
    check_fine("GET / HTTP/1.1\r\n", 0, RequestPhase::Head);
    check_fine(
        "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na",
        1,
        RequestPhase::Body,
    );
    check_fine(
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        1,
        RequestPhase::Body,
    );
}

#[test]
fn ambiguous_lines_are_violations() {
    for line in [
        "GET / HTTP/1.1\n",
        "GET /\r\n",
        "GET  / HTTP/1.1\r\n",
        "GET / HTTP/1.1 \r\n",
        "GET / HTTP/2.0\r\n",
        "GET / HTTP/1.2\r\n",
        "GET / http/1.1\r\n",
        "GET /a b HTTP/1.1\r\n",
        "GET /\ta HTTP/1.1\r\n",
        "GET /a#b HTTP/1.1\r\n",
        "GET /\u{7f} HTTP/1.1\r\n",
        "GE(T / HTTP/1.1\r\n",
        " / HTTP/1.1\r\n",
        "GET\0 / HTTP/1.1\r\n",
        "\n",
        "\r\n\r\n\r\n",
    ] {
        check_wrong(line.as_bytes());
    }
    for line in [
        "X: a\n",
        "X : a\r\n",
        "X\t: a\r\n",
        " X: a\r\n",
        "\tX: a\r\n",
        " a\r\n",
        ": a\r\n",
        "X\r\n",
        "X: a\rb\r\n",
        "X: a\0b\r\n",
        "X: a\u{1}\r\n",
        "X: a\u{7f}\r\n",
        "X(: a\r\n",
        "X\0: a\r\n",
        "\n",
        "X: a\r\r\n",
        "\r\r\n",
    ] {
        check_wrong(format!("GET / HTTP/1.1\r\nHost: a\r\n{line}").as_bytes());
    }
}

#[test]
fn repeated_or_malformed_lengths_and_codings_are_violations() {
    for line in [
        "Content-Length:\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x1\r\n",
        "Content-Length: 1,1\r\n",
        "Content-Length: 1 1\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n",
        "Content-Length: 1\r\ncontent-length: 2\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding:\tchunked\r\n",
        "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: ,chunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chunked;x=1\r\n",
        "Transfer-Encoding: chunked\r\n chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: gzip\r\n\r\n",
    ] {
        check_wrong(format!("POST / HTTP/1.1\r\n{line}").as_bytes());
    }
    check_wrong(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
}

#[test]
fn malformed_chunks_are_violations() {
    for chunks in [
        "0x1\r\n",
        "+1\r\n",
        "-1\r\n",
        " 1\r\n",
        "1 \r\n",
        "1 ;a\r\n",
        "1\n",
        "\r\n",
        ";a\r\n",
        "g\r\n",
        "8000000000000000\r\n",
        "00000000000000001\r\n",
        "1;a\n",
        "1;a\rb\r\n",
        "1;\0\r\n",
        "1\r\naX",
        "1\r\na\n",
        "1\r\na\rX",
        "1\r\na\r\r",
        "0\r\n\n",
        "0\r\nX: a\n",
        "0\r\n X: a\r\n",
        "0\r\nX\r\n",
        "0\r\nContent-Length: 1\r\n",
        "0\r\ntransfer-encoding: chunked\r\n",
        "0\r\nHost: b\r\n",
        "0\r\nCookie: a=1\r\n",
        "0\r\nX: 1\r\nAuthorization: x\r\n",
    ] {
        check_wrong(
            format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}").as_bytes(),
        );
    }
    let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let longest = format!(
        "{head}1;{}\r\na\r\n0\r\n\r\n",
        "a".repeat(CHUNK_LINE_MAX - 2)
    );
    assert_eq!(look(longest.as_bytes()), None);
    // Detected before its line ends.
    check_wrong(format!("{head}1;{}", "a".repeat(CHUNK_LINE_MAX)).as_bytes());
}

#[test]
fn a_message_without_a_known_end_is_the_last_one() {
    for head in [
        "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\n\r\n",
    ] {
        let behind = format!("{head}GET / HTTP/1.1\r\n\r\n");
        check_fine(&behind, 1, RequestPhase::Beyond);
        assert_eq!(Screen::new().look(behind.as_bytes()), Ok(head.len()));
    }
}

#[test]
fn no_bytes_are_checked_before_the_response_to_an_upgrade() {
    let upgrade = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";
    let mut screen = Screen::new();
    let behind = [&upgrade[..], b"\n\0"].concat();
    for _ in 0..2 {
        assert_eq!(screen.look(&behind), Ok(upgrade.len()));
        assert!(screen.awaits_response());
        assert_eq!(screen.look(b"\n"), Ok(0));
        screen.resume();
    }
    assert!(screen.look(b"\n").is_err());
    // With a body, the request is an ordinary one.
    check_fine(
        "POST / HTTP/1.1\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\na",
        1,
        RequestPhase::Between,
    );
}
