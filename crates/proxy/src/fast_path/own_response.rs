//! Response of the layers, written to the client.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, Response, StatusCode};
use hyper::ext::ReasonPhrase;

use super::request_head::write_line;
use super::response_body::Framing;
use super::response_head::{may_have_length, write_chunked, write_length, write_status};

thread_local! {
    static DATE_TEXT: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

/// Appends the header `Date`. The text is formatted once a second.
#[expect(
    clippy::disallowed_methods,
    reason = "the date of a response decides nothing"
)]
pub(super) fn write_date(out: &mut Vec<u8>) {
    let now = SystemTime::now();
    let second = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    DATE_TEXT.with_borrow_mut(|(of, text)| {
        if *of != second || text.is_empty() {
            *of = second;
            *text = httpdate::fmt_http_date(now);
        }
        write_line(out, "date", text.as_bytes());
    });
}

/// Returns how a body ends that has this size, after this head.
pub(super) fn framing_of(
    headers: &HeaderMap,
    status: StatusCode,
    is_head: bool,
    exact: Option<u64>,
) -> Framing {
    let has_body = !is_head
        && !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED;
    if !has_body {
        return Framing::None;
    }
    // A body of an origin says its length only in the head.
    let stated = headers.get(CONTENT_LENGTH);
    let stated = stated.and_then(|length| length.to_str().ok()?.parse().ok());
    stated.or(exact).map_or(Framing::Chunks, Framing::Length)
}

/// Appends a head, without its end. `Content-Length` of a response without a body stays: it is that
/// of a GET.
pub(super) fn write_head<B>(
    out: &mut Vec<u8>,
    response: &Response<B>,
    is_head: bool,
    framing: Framing,
) {
    let headers = response.headers();
    let reason = response.extensions().get::<ReasonPhrase>();
    let reason = reason.and_then(|reason| std::str::from_utf8(reason.as_bytes()).ok());
    write_status(out, response.status(), reason);
    let keeps_length = is_head && may_have_length(response.status());
    for (name, value) in headers {
        let is_framing = *name == CONNECTION
            || *name == TRANSFER_ENCODING
            || (*name == CONTENT_LENGTH && !keeps_length);
        if !is_framing {
            write_line(out, name.as_str(), value.as_bytes());
        }
    }
    match framing {
        Framing::Length(length) => write_length(out, length),
        Framing::Chunks | Framing::UntilClose => write_chunked(out),
        Framing::None => {}
    }
    if !headers.contains_key(DATE) {
        write_date(out);
    }
}

/// Appends the end of a head. `is_last`: the connection closes after the response.
pub(super) fn end_head(out: &mut Vec<u8>, is_last: bool) {
    if is_last {
        out.extend_from_slice(b"connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
}
