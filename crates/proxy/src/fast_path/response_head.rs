//! Head of an origin's response: how its body ends, and what the client gets.
//!
//! Most heads go out line by line, from where they were read. The rest becomes a map of headers and
//! takes the way of the slow path: cookies with our names, commands, odd headers of one connection.

use std::mem::MaybeUninit;

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::copied_lines::CopiedLines;
use super::request_head::begins;
use super::response_body::Framing;
use crate::body::Body;
use crate::cookies;
use crate::header_view::Line;
use crate::reverse_proxy::hop;

/// Most headers of a response on the fast path. An origin with a higher limit is not on it.
pub(crate) const HEADERS_MAX: usize = 128;

/// Head of a response that has arrived.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    /// Bytes of the head, with its empty line.
    pub(super) length: usize,
    pub(super) framing: Framing,
    /// Whether the connection can be used again after the body.
    pub(super) keeps_alive: bool,
    pub(super) form: Form,
}

/// Form in which a head goes to the client.
#[derive(Debug)]
pub(super) enum Form {
    /// Status line and headers as they are sent, without the end of the head.
    Lines(Vec<u8>),
    /// Head that the rest of the proxy changes first.
    Map(Box<Response<Body>>),
}

/// Head that has not arrived, or must not be passed on.
#[derive(Debug)]
pub(super) enum NoHead {
    /// More bytes are needed.
    Later,
    /// Limit on headers exceeded.
    TooLarge,
    /// Bytes that are not HTTP, or whose end is unclear.
    Broken,
    /// An interim response of so many bytes.
    Interim(usize),
}

/// Facts that decide how a head is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Whether the request was HEAD.
    pub(super) is_head: bool,
    /// Most headers.
    pub(super) headers_max: usize,
    /// Whether the head becomes a map, whatever is in it.
    pub(super) makes_map: bool,
}

/// Reads a head. The lines for the client are appended to `out`.
pub(super) fn read(
    bytes: &[u8],
    reading: Reading,
    mut out: Vec<u8>,
) -> Result<ResponseHead, (NoHead, Vec<u8>)> {
    let is_head = reading.is_head;
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut lines,
    );
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Err((NoHead::Later, out)),
        Err(httparse::Error::TooManyHeaders) => return Err((NoHead::TooLarge, out)),
        Err(_) => return Err((NoHead::Broken, out)),
    };
    if response.headers.len() > reading.headers_max {
        return Err((NoHead::TooLarge, out));
    }
    let status = response
        .code
        .and_then(|code| StatusCode::from_u16(code).ok());
    let Some(status) = status else {
        return Err((NoHead::Broken, out));
    };
    if status.is_informational() {
        // Nobody asked for another protocol.
        let is_interim = status != StatusCode::SWITCHING_PROTOCOLS;
        let no_head = if is_interim {
            NoHead::Interim(length)
        } else {
            NoHead::Broken
        };
        return Err((no_head, out));
    }
    let lines: &[Line<'_>] = response.headers;
    let facts = Facts::of(lines, response.version == Some(1));
    let has_body =
        !is_head && status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED;
    let Some(framing) = facts.framing(has_body) else {
        return Err((NoHead::Broken, out));
    };
    let form = if facts.is_plain && !reading.makes_map {
        write_status(&mut out, status, response.reason);
        write_lines(&mut out, (bytes, lines), &facts, (is_head, status, framing));
        Form::Lines(out)
    } else {
        let start = (status, response.reason, facts.is_http11);
        let Some(map) = map_of(lines, start) else {
            return Err((NoHead::Broken, out));
        };
        Form::Map(Box::new(map))
    };
    Ok(ResponseHead {
        status,
        length,
        framing,
        keeps_alive: facts.keeps_alive,
        form,
    })
}

/// Facts about a message from its headers.
struct Facts {
    is_http11: bool,
    keeps_alive: bool,
    /// Whether the headers can go out line by line.
    is_plain: bool,
    length: Length,
    coding: Coding,
    has_date: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Length {
    None,
    One(u64),
    Unclear,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Coding {
    None,
    Chunked,
    Foreign,
}

impl Facts {
    fn of(lines: &[Line<'_>], is_http11: bool) -> Self {
        let mut facts = Self {
            is_http11,
            keeps_alive: is_http11,
            is_plain: true,
            length: Length::None,
            coding: Coding::None,
            has_date: false,
        };
        for line in lines {
            facts.note(line);
        }
        facts
    }

    fn note(&mut self, line: &Line<'_>) {
        let (name, value) = (line.name, line.value);
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            4 if is("date") => self.has_date = true,
            10 if is("connection") => {
                if value.eq_ignore_ascii_case(b"close") {
                    self.keeps_alive = false;
                } else if !value.eq_ignore_ascii_case(b"keep-alive") {
                    let mut tokens = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
                    self.keeps_alive &= !tokens.any(|token| token.eq_ignore_ascii_case(b"close"));
                    self.is_plain = false;
                }
            }
            14 if is("content-length") => self.note_length(value),
            17 if is("transfer-encoding") => {
                self.coding = match self.coding {
                    Coding::None if value.eq_ignore_ascii_case(b"chunked") => Coding::Chunked,
                    _ => Coding::Foreign,
                };
            }
            10 if is("set-cookie") => {
                self.is_plain &= !cookies::sets(value, cookies::PREFIX);
            }
            10 if is("keep-alive") => self.is_plain = false,
            2 if is("te") => self.is_plain = false,
            7 if is("upgrade") || is("trailer") => self.is_plain = false,
            16 if is("anteroom-command") => self.is_plain = false,
            23 if is("cf-waiting-room-command") => self.is_plain = false,
            // Limits replace the state of the origin's limits.
            _ => self.is_plain &= !begins(name, "proxy-") && !begins(name, "x-ratelimit-"),
        }
    }

    fn note_length(&mut self, value: &[u8]) {
        for part in value.split(|byte| *byte == b',') {
            // The limit of hyper, and a length that no body reaches.
            let length =
                hop::number(part.trim_ascii()).filter(|length| i64::try_from(*length).is_ok());
            self.length = match (self.length, length) {
                (Length::None, Some(length)) => Length::One(length),
                (Length::One(known), Some(length)) if known == length => self.length,
                _ => Length::Unclear,
            };
        }
    }

    /// Returns how the body ends (RFC 9112, section 6.3); `None` if readers may differ in that.
    fn framing(&self, has_body: bool) -> Option<Framing> {
        match (self.coding, self.length) {
            (Coding::Foreign, _) | (Coding::None, Length::Unclear) => None,
            _ if !has_body => Some(Framing::None),
            (Coding::Chunked, _) if !self.is_http11 => None,
            (Coding::Chunked, _) => Some(Framing::Chunks),
            (Coding::None, Length::One(length)) => Some(Framing::Length(length)),
            (Coding::None, Length::None) => Some(Framing::UntilClose),
        }
    }
}

/// Appends a status line. `None`: the usual reason of the status.
pub(super) fn write_status(out: &mut Vec<u8>, status: StatusCode, reason: Option<&str>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    let usual = || status.canonical_reason().unwrap_or("<none>");
    let reason = reason.unwrap_or_else(usual);
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_lines(
    out: &mut Vec<u8>,
    (head, lines): (&[u8], &[Line<'_>]),
    facts: &Facts,
    (is_head, status, framing): (bool, StatusCode, Framing),
) {
    let mut copied = CopiedLines::of(head);
    for line in lines {
        let is = |other: &str| line.name.eq_ignore_ascii_case(other);
        let is_framing = match line.name.len() {
            10 => is("connection"),
            14 => is("content-length"),
            17 => is("transfer-encoding"),
            _ => false,
        };
        if !is_framing {
            copied.add(out, line);
        }
    }
    copied.flush(out);
    match (framing, facts.length) {
        (Framing::Length(length), _) => write_length(out, length),
        (Framing::Chunks | Framing::UntilClose, _) => write_chunked(out),
        // The length that a GET would have had.
        (Framing::None, Length::One(length))
            if is_head && facts.coding == Coding::None && may_have_length(status) =>
        {
            write_length(out, length);
        }
        (Framing::None, _) => {}
    }
    out.extend_from_slice(if facts.is_http11 {
        b"via: 1.1 anteroom\r\n"
    } else {
        b"via: 1.0 anteroom\r\n"
    });
    if !facts.has_date {
        super::own_response::write_date(out);
    }
}

/// Whether a response to HEAD may have a length: that of a GET. hyper drops the others.
pub(super) fn may_have_length(status: StatusCode) -> bool {
    status != StatusCode::NO_CONTENT
}

/// Appends the length of a body.
pub(super) fn write_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"content-length: ");
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends the header of a body in chunks.
pub(super) fn write_chunked(out: &mut Vec<u8>) {
    out.extend_from_slice(b"transfer-encoding: chunked\r\n");
}

/// Returns the head as the rest of the proxy knows it; `None` if a header is not valid there.
fn map_of(
    lines: &[Line<'_>],
    (status, reason, is_http11): (StatusCode, Option<&str>, bool),
) -> Option<Response<Body>> {
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(line.value).ok()?);
    }
    let version = if is_http11 {
        Version::HTTP_11
    } else {
        Version::HTTP_10
    };
    hop::unify_length(&mut headers).ok()?;
    hop::clean_response(&mut headers);
    hop::via(&mut headers, version);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if let Some(Ok(reason)) = reason.map(|reason| ReasonPhrase::try_from(reason.as_bytes())) {
        response.extensions_mut().insert(reason);
    }
    Some(response)
}

#[cfg(test)]
mod tests;
