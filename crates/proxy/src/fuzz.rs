//! Properties of parsers for arbitrary bytes; fuzzers and tests call them.
//!
//! Each function compares this crate with a naive implementation. The strict reader of a connection
//! is also compared with the parser behind it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

use bytes::Bytes;
use http::header::{ACCEPT, COOKIE, HOST};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::cookies::{self, PREFIX, VALUES_MAX};
use crate::downstream::screen::{RequestPhase, Screen};
use crate::fast_path::fuzzed as fast_path;
use crate::path::{Decoding, READING_BYTES_MAX, Readings};

/// Name of the cookie for [`cookie_header`].
const COOKIE_NAME: &str = "__anteroom_shop";

/// Checks `data` as `Cookie` headers, one per line, before and after our own cookies are removed.
/// Lines that are not a header value are skipped, as the HTTP parser would reject them.
///
/// # Panics
///
/// If values are found that a naive reader does not find, or vice versa. If, after the removal, a
/// cookie of ours remains, another is missing or changed, a header is empty, or other headers
/// change. Any other panic is a defect as well.
pub fn cookie_header(data: &[u8]) {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    for line in data.split(|byte| *byte == b'\n') {
        if let Ok(line) = HeaderValue::from_bytes(line) {
            headers.append(COOKIE, line);
        }
    }
    let before = headers.clone();
    assert_eq!(
        *cookies::values(&headers, COOKIE_NAME),
        *naive_values(&naive_pieces(&before)),
        "other values than the naive reader's"
    );

    cookies::without(&mut headers, PREFIX);
    let mut expected = naive_pieces(&before);
    expected.retain(|piece| !piece.starts_with(PREFIX));
    let is_touched = expected.len() < naive_pieces(&before).len();
    if is_touched {
        assert_eq!(naive_pieces(&headers), expected, "other cookies are left");
        assert!(cookies::values(&headers, COOKIE_NAME).is_empty());
        let count = |headers: &HeaderMap| headers.get_all(COOKIE).iter().count();
        assert!(count(&headers) <= count(&before), "a header more");
        assert_eq!(headers.get(ACCEPT), before.get(ACCEPT));
        // A line of only `;` must stay; one that we emptied must go.
        for line in headers.get_all(COOKIE) {
            let was_present = before.get_all(COOKIE).iter().any(|known| known == line);
            let has_content = !pieces_of_line(line.as_bytes()).is_empty();
            assert!(was_present || has_content, "left an empty header");
        }
    } else {
        assert_eq!(headers, before, "touched without a reason");
    }
    let once = headers.clone();
    cookies::without(&mut headers, PREFIX);
    assert_eq!(headers, once, "a second time changes something");
}

/// Returns all pieces between `;` that are not blank, each byte as one character.
fn naive_pieces(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(COOKIE).iter();
    lines
        .flat_map(|line| pieces_of_line(line.as_bytes()))
        .collect()
}

fn pieces_of_line(line: &[u8]) -> Vec<String> {
    let text: String = line.iter().copied().map(char::from).collect();
    let pieces = text.split(';').map(|piece| piece.trim_matches([' ', '\t']));
    pieces
        .filter(|piece| !piece.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the values of our cookie that are UTF-8.
fn naive_values(pieces: &[String]) -> Vec<String> {
    let mut values = Vec::new();
    for piece in pieces {
        let Some((name, value)) = piece.split_once('=') else {
            continue;
        };
        if name.trim_end_matches([' ', '\t']) != COOKIE_NAME {
            continue;
        }
        let mut value = value.trim_start_matches([' ', '\t']);
        if value.len() >= 2 && value.starts_with('"') && value.ends_with('"') {
            value = &value[1..value.len() - 1];
        }
        let bytes = value.chars().map(|character| {
            u8::try_from(u32::from(character)).expect("each character was made of one byte")
        });
        values.extend(String::from_utf8(bytes.collect()));
    }
    values.truncate(VALUES_MAX);
    values
}

/// Checks the readings of `data` as a path.
///
/// # Panics
///
/// If the path as sent or its normal form is not among the readings; if a reading is not a path,
/// has a control byte, or all of them exceed the budget; if the normal form of a path without
/// further escapes has another reading. Any other panic is a defect as well.
pub fn path(data: &[u8]) {
    let sent = String::from_utf8_lossy(data);
    for decoding in [Decoding::Once, Decoding::Twice] {
        if let Ok(readings) = Readings::under(decoding, &sent) {
            check_readings(&sent, &readings);
        }
    }
}

fn check_readings(sent: &str, readings: &Readings<'_>) {
    assert_eq!(readings.sent(), sent);
    assert_eq!(readings.iter().next(), Some(sent));
    let normal = readings.normal();
    assert!(
        readings.iter().any(|reading| reading == normal),
        "the normal form is no reading"
    );
    let mut bytes = 0;
    for reading in readings.iter() {
        assert!(reading.starts_with('/'), "no path: {reading:?}");
        let is_control = |byte: u8| byte < 0x20 || byte == 0x7f;
        assert!(
            !reading.bytes().any(is_control),
            "a control byte: {reading:?}"
        );
        bytes += reading.len();
    }
    assert!(
        bytes <= sent.len() * 2 + READING_BYTES_MAX,
        "more readings than they may cost"
    );
    assert!(
        readings
            .decoded()
            .all(|decoded| readings.iter().any(|it| it == decoded)),
        "a decoded reading is no reading"
    );
    // The normal form is decoded once, so a path that was encoded twice has other readings a second
    // time.
    if !normal.contains('%') {
        let again = Readings::of(normal).expect("a normal form is an ordinary path");
        assert!(
            again.iter().all(|reading| reading == normal),
            "{normal:?} is not normal: {again:?}"
        );
        assert!(!again.can_escape(), "{normal:?} still climbs");
    }
}

/// Request that was found: method and target, and its body if it was complete.
type Found = (String, Option<Vec<u8>>);

/// Checks `data` as the bytes of a connection.
///
/// # Panics
///
/// If the strict reader finds something else when the bytes arrive one by one; if it accepts
/// requests that the naive reader or the parser divides otherwise, or that have two framings; if
/// the parser finds more requests than the strict reader. Any other panic is a defect as well.
pub fn screen(data: &[u8]) {
    let mut whole = Screen::new();
    let looked = whole.look(data);
    let wrong = looked.as_ref().err().map(|violation| violation.at);
    let mut pieces = Screen::new();
    let found = data
        .chunks(1)
        .enumerate()
        .find_map(|(at, byte)| pieces.look(byte).err().map(|violation| at + violation.at));
    assert_eq!(wrong, found, "cut into bytes it is another violation");
    assert_eq!(
        (whole.heads(), whole.phase()),
        (pieces.heads(), pieces.phase())
    );
    // The bytes as the connection passes them on.
    let passed = match looked {
        Ok(looked) => data[..looked].to_vec(),
        Err(violation) => {
            let end: &[u8] = if violation.is_in_head {
                b"\0\r\n\r\n"
            } else {
                b"\0"
            };
            [&data[..violation.at], end].concat()
        }
    };
    let parsed = parsed_requests(&passed);
    let count = parsed.len();
    assert!(count as u64 <= whole.heads(), "more than were seen");
    if wrong.is_none() && whole.phase() == RequestPhase::Between {
        let naive = naive_requests(data).expect("it ends where a request does");
        assert_eq!(naive.len() as u64, whole.heads(), "other requests");
        // The parser may reject more than framing, such as many trailers, and ends then.
        for (index, (parsed, naive)) in parsed.iter().zip(&naive).enumerate() {
            assert_eq!(parsed.0, naive.0, "divided otherwise");
            let is_last = index + 1 == count;
            let is_rejected = is_last && parsed.1.is_none();
            assert!(is_rejected || parsed.1 == naive.1, "another body");
        }
    }
}

/// Checks `data` as the bytes of a connection on the fast path.
///
/// # Panics
///
/// If the fast path takes a head that the strict reader or the parser rejects or divides otherwise;
/// if what it sends on is not exactly one request to every reader, or has other headers than the
/// slow path sends. Any other panic is a defect as well.
pub fn fast_request(data: &[u8]) {
    for is_trusted in [false, true] {
        fast_request_of_peer(data, is_trusted);
    }
}

fn fast_request_of_peer(data: &[u8], is_trusted: bool) {
    let Some((length, sent_on)) = fast_path::sent_on(data, is_trusted) else {
        return;
    };
    let head = &data[..length];
    let mut screen = Screen::new();
    assert_eq!(screen.look(head), Ok(length), "the strict reader");
    assert_eq!((screen.heads(), screen.phase()), (1, RequestPhase::Between));
    let (found, mut usual) = parsed_with_headers(head)
        .pop()
        .expect("the parser takes it");
    let (again, headers) = {
        let mut all = parsed_with_headers(&sent_on);
        assert_eq!(all.len(), 1, "one request is sent on");
        all.pop().expect("there is one")
    };
    assert_eq!(again, found, "another request is sent on");
    assert_eq!(naive_requests(&sent_on), Some(vec![found]));
    let host = usual.get(HOST).cloned().expect("it has one");
    fast_path::change_as_usual(&mut usual, host, is_trusted);
    assert_eq!(multimap(&headers), multimap(&usual));
}

/// Returns the headers in alphabetical order; those of one name in theirs.
fn multimap(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = headers
        .iter()
        .map(|(name, value)| {
            // Readers remove blanks around a value.
            let value = value.as_bytes().trim_ascii();
            (name.to_string(), value.to_vec())
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Checks `data` as the response of an origin on the fast path, to HEAD if the first byte is odd.
///
/// # Panics
///
/// If the client gets something else when the bytes arrive one by one; if it gets a header that
/// only the gateway may send, two framings, or a body that a naive reader reads otherwise. Any
/// other panic is a defect as well.
pub fn fast_response(data: &[u8]) {
    let Some((flags, data)) = data.split_first() else {
        return;
    };
    let is_head = flags & 1 == 1;
    let whole = fast_path::response_to_client(data, is_head, data.len().max(1));
    let pieces = fast_path::response_to_client(data, is_head, 1);
    assert_eq!(whole.is_some(), pieces.is_some());
    let (Some(whole), Some(pieces)) = (whole, pieces) else {
        return;
    };
    let names = sent_names(&whole.head);
    assert_eq!(names, sent_names(&pieces.head));
    assert_eq!(whole.has_ended, pieces.has_ended);
    for never in [
        "anteroom-command",
        "cf-waiting-room-command",
        "connection",
        "keep-alive",
    ] {
        assert!(!names.iter().any(|name| name == never), "{never}");
    }
    let count = |name: &str| names.iter().filter(|found| *found == name).count();
    let (lengths, codings) = (count("content-length"), count("transfer-encoding"));
    assert!(lengths + codings <= 1, "framed in two ways");
    if codings == 0 {
        assert_eq!(whole.body, pieces.body);
        return;
    }
    let (body, rest) = sent_chunks(&whole.body);
    assert_eq!(body, sent_chunks(&pieces.body).0, "another body");
    assert_eq!(
        rest.is_some(),
        whole.has_ended,
        "the last chunk ends the body"
    );
    assert!(
        rest.unwrap_or_default().is_empty(),
        "bytes after the last chunk"
    );
}

/// Returns the names of the headers in a head that is sent.
fn sent_names(head: &[u8]) -> Vec<String> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let head = head
        .strip_suffix("\r\n\r\n")
        .expect("it ends with an empty line");
    let lines = head.split("\r\n").skip(1);
    let names = lines.map(|line| line.split_once(": ").expect("a header has a colon").0);
    names.map(str::to_owned).collect()
}

/// Returns the data of chunks that are sent, and what follows the last one; `None` without one.
fn sent_chunks(mut bytes: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let mut data = Vec::new();
    while let Some((line, rest)) = cut(bytes, b"\r\n") {
        let size = std::str::from_utf8(line).expect("a size is text");
        let size = usize::from_str_radix(size, 16).expect("a size is a number");
        let (chunk, rest) = rest.split_at(size);
        data.extend_from_slice(chunk);
        let rest = rest.strip_prefix(b"\r\n").expect("a chunk is sent whole");
        if size == 0 {
            return (data, Some(rest));
        }
        bytes = rest;
    }
    (data, None)
}

/// Returns the requests that hyper finds.
fn parsed_requests(data: &[u8]) -> Vec<Found> {
    let all = parsed_with_headers(data).into_iter();
    all.map(|(found, _)| found).collect()
}

/// Returns the requests that hyper finds, with their headers.
fn parsed_with_headers(data: &[u8]) -> Vec<(Found, HeaderMap)> {
    let requests = RefCell::new(Vec::<(Found, HeaderMap)>::new());
    let service = service_fn(async |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        let at = requests.borrow().len();
        let name = format!("{} {}", head.method, head.uri);
        requests.borrow_mut().push(((name, None), head.headers));
        let body = body
            .collect()
            .await
            .ok()
            .map(|body| body.to_bytes().to_vec());
        requests.borrow_mut()[at].0.1 = body;
        Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
    });
    let stream = TokioIo::new(tokio::io::join(data, tokio::io::sink()));
    {
        let mut parser = http1::Builder::new();
        parser.half_close(true).header_read_timeout(None);
        let mut connection = pin!(parser.serve_connection(stream, service));
        // No input is awaited; hyper yields now and then.
        let mut cx = Context::from_waker(Waker::noop());
        let turns = data.len() + 16;
        let ended = (0..turns).any(|_| connection.as_mut().poll(&mut cx).is_ready());
        assert!(ended, "it waits");
    }
    requests.into_inner()
}

/// Returns the requests, if they end where `data` does.
fn naive_requests(mut data: &[u8]) -> Option<Vec<Found>> {
    let mut requests = Vec::new();
    loop {
        while let Some(rest) = data.strip_prefix(b"\r\n") {
            data = rest;
        }
        if data.is_empty() {
            return Some(requests);
        }
        let (head, rest) = cut(data, b"\r\n\r\n")?;
        data = rest;
        let head = String::from_utf8_lossy(head);
        let name = head.lines().next()?.rsplit_once(" HTTP/")?.0.to_owned();
        let head = head.to_ascii_lowercase();
        let values = |name: &str| -> Vec<String> {
            let fields = head.split(['\r', '\n']).skip(1);
            let fields = fields.filter_map(|line| line.split_once(':'));
            let named = fields.filter(|(found, _)| found.trim() == name);
            named.map(|(_, value)| value.trim().to_owned()).collect()
        };
        let (codings, lengths) = (values("transfer-encoding"), values("content-length"));
        assert!(codings.len() + lengths.len() <= 1, "framed in two ways");
        let body;
        if let Some(coding) = codings.first() {
            assert_eq!(coding, "chunked");
            (body, data) = naive_chunks(data)?;
        } else if let Some(length) = lengths.first() {
            let length = length.parse().ok()?;
            let (taken, rest) = data.split_at_checked(length)?;
            (body, data) = (taken.to_vec(), rest);
        } else {
            body = Vec::new();
        }
        requests.push((name, Some(body)));
    }
}

/// Splits off a body in chunks; returns it and the rest.
fn naive_chunks(mut data: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut body = Vec::new();
    loop {
        let (line, rest) = cut(data, b"\r\n")?;
        let line = std::str::from_utf8(line).ok()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        data = rest;
        if size == 0 {
            loop {
                let (line, rest) = cut(data, b"\r\n")?;
                data = rest;
                if line.is_empty() {
                    return Some((body, data));
                }
            }
        }
        let (chunk, rest) = data.split_at_checked(size)?;
        body.extend_from_slice(chunk);
        data = rest.strip_prefix(b"\r\n")?;
    }
}

/// Splits `data` at the first `at`.
fn cut<'a>(data: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let found = memchr::memmem::find(data, at)?;
    Some((&data[..found], &data[found + at.len()..]))
}
