//! What must hold for any bytes whatever; called by fuzzers and by the tests.
//!
//! Each function compares what this crate does with the same thing done in the plainest way.

use http::header::{ACCEPT, COOKIE};
use http::{HeaderMap, HeaderValue};

use crate::cookies::{self, PREFIX, VALUES_MAX};
use crate::path::{Decoding, READING_BYTES_MAX, Readings};

/// The cookie that [`cookie_header`] looks for.
const COOKIE_NAME: &str = "__anteroom_shop";

/// Reads `data` as `Cookie` headers, one on each line, and removes our own from them. Lines that
/// are no header value are left out, as the HTTP parser would have refused them.
///
/// # Panics
///
/// If values are found that a naive reader does not find, or the other way round; if after the
/// removal a cookie of ours is left, another is missing or changed, or a header says nothing; if
/// other headers change. Any other panic is a mistake too.
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
        // A line of nothing but `;` was not ours to mend; one that we emptied is.
        for line in headers.get_all(COOKIE) {
            let was_there = before.get_all(COOKIE).iter().any(|known| known == line);
            let says_something = !pieces_of_line(line.as_bytes()).is_empty();
            assert!(was_there || says_something, "left an empty header");
        }
    } else {
        assert_eq!(headers, before, "touched without a reason");
    }
    let once = headers.clone();
    cookies::without(&mut headers, PREFIX);
    assert_eq!(headers, once, "a second time changes something");
}

/// All pieces between `;` that are not blank, each byte as one character.
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

/// The values of our cookie, as UTF-8 where they are.
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

/// Lists the readings of `data` as a path.
///
/// # Panics
///
/// If the path as sent or its normal form is not among the readings; if a reading is no path,
/// holds a control byte, or all of them cost more than they may; if the normal form of a path
/// without further escapes has another reading. Any other panic is a mistake too.
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
    // The normal form is decoded once, so what was encoded twice reads differently a second time.
    if !normal.contains('%') {
        let again = Readings::of(normal).expect("a normal form is an ordinary path");
        assert!(
            again.iter().all(|reading| reading == normal),
            "{normal:?} is not normal: {again:?}"
        );
        assert!(!again.leads_anywhere(), "{normal:?} still climbs");
    }
}
