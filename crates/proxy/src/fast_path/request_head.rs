//! Head of a request: which ones are mine, and what the origin gets.
//!
//! A head is mine only if every reader reads it in the same way: complete lines with CRLF, one
//! `Host`, no body or a short one of a stated length, no header that has to do with this hop. All
//! else is not mine, be it allowed or not. What is sent on is written anew, in canonical form, from
//! recognized parts only.

use std::mem::MaybeUninit;
use std::sync::LazyLock;

use http::Method;
use memchr::memmem::Finder;

use super::copied_lines::CopiedLines;
use super::response_head::write_length;
use crate::cookies;
use crate::downstream::observer::FastPathRequest;
use crate::forwarded::{self, Client, TrustedProxies, is_odd};
use crate::header_view::{HeaderView, Line};
use crate::loops;

/// Most headers of a request that is mine.
pub(super) const HEADERS_MAX: usize = 64;
/// Longest name of a header.
const NAME_MAX: usize = 64;

/// Memory for the lines of a head.
pub(super) type Lines<'b> = [MaybeUninit<Line<'b>>; HEADERS_MAX];

/// Returns memory for the lines of a head.
pub(super) const fn no_lines<'b>() -> Lines<'b> {
    [const { MaybeUninit::uninit() }; HEADERS_MAX]
}

/// Head of a request that is mine.
#[derive(Debug)]
pub(super) struct RequestHead<'b> {
    pub(super) method: &'static Method,
    /// Path and query.
    pub(super) target: &'b str,
    pub(super) host: &'b str,
    /// The whole head.
    bytes: &'b [u8],
    pub(super) lines: &'b [Line<'b>],
    /// Whether the client closes the connection after the response.
    pub(super) wants_close: bool,
    /// `Content-Length`: of a method that has a body, and of no other.
    length: Option<usize>,
}

/// Limits of heads.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadLimits {
    pub(super) headers: usize,
    pub(super) target_bytes: usize,
    /// Most bytes of a body.
    pub(super) body_bytes: usize,
}

impl HeadLimits {
    /// No limits, for a head that was read with its limits before.
    pub(super) const NONE: Self = Self {
        headers: usize::MAX,
        target_bytes: usize::MAX,
        body_bytes: usize::MAX,
    };
}

/// Returns a method of requests that are mine, and whether they have a body.
fn method_of(name: &str) -> Option<(&'static Method, bool)> {
    Some(match name {
        "GET" => (&Method::GET, false),
        "HEAD" => (&Method::HEAD, false),
        "POST" => (&Method::POST, true),
        "PUT" => (&Method::PUT, true),
        "PATCH" => (&Method::PATCH, true),
        "DELETE" => (&Method::DELETE, true),
        _ => return None,
    })
}

/// Whether a head that has begun like this may be mine. Others must not wait for their end here:
/// some are not HTTP, and get their error at once.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    let starts: &[&[u8]] = match bytes.first() {
        None => return true,
        Some(b'G') => &[b"GET /"],
        Some(b'H') => &[b"HEAD /"],
        Some(b'P') => &[b"POST /", b"PUT /", b"PATCH /"],
        Some(b'D') => &[b"DELETE /"],
        Some(_) => &[],
    };
    starts.iter().any(|start| {
        let known = start.len().min(bytes.len());
        bytes[..known] == start[..known]
    })
}

/// End of a head in a buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HeadEnd {
    /// The head has so many bytes, with its empty line.
    At(usize),
    /// More bytes are needed.
    Later,
    /// A line does not end with CRLF, or the head begins with an empty line.
    Odd,
}

/// Most heads arrive at once.
static HEAD_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n\r\n"));

/// Search for the end of a head that arrives in pieces: no byte is looked at twice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeadSearch {
    looked: usize,
    line_start: usize,
}

impl HeadSearch {
    /// Looks at the bytes that were added. The bytes of the earlier calls come first.
    ///
    /// Where the first call finds an end, the lines before it may be odd: [`RequestHead::read`]
    /// looks at each line anyway.
    pub(super) fn look(&mut self, bytes: &[u8]) -> HeadEnd {
        if self.looked == 0
            && let Some(at) = HEAD_END.find(bytes)
        {
            return HeadEnd::At(at + HEAD_END.needle().len());
        }
        while let Some(found) = memchr::memchr(b'\n', &bytes[self.looked..]) {
            let at = self.looked + found;
            let line = &bytes[self.line_start..at];
            let Some(line) = line.strip_suffix(b"\r") else {
                return HeadEnd::Odd;
            };
            if line.is_empty() {
                return if self.line_start == 0 {
                    HeadEnd::Odd
                } else {
                    HeadEnd::At(at + 1)
                };
            }
            self.looked = at + 1;
            self.line_start = at + 1;
        }
        self.looked = bytes.len();
        HeadEnd::Later
    }
}

impl<'b> RequestHead<'b> {
    /// Reads a whole head.
    ///
    /// # Errors
    ///
    /// Why it is not mine.
    pub(super) fn read(
        bytes: &'b [u8],
        lines: &'b mut Lines<'b>,
        limits: HeadLimits,
    ) -> Result<Self, FastPathRequest> {
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(bytes, lines);
        if parsed != Ok(httparse::Status::Complete(bytes.len())) {
            return Err(FastPathRequest::Header);
        }
        let method = request.method.and_then(method_of);
        let (method, has_body) = method.ok_or(FastPathRequest::Start)?;
        let target = request.path.unwrap_or_default();
        let lines: &'b [Line<'b>] = request.headers;
        // The parser takes a line without CR and an empty line before the first one, and no CR
        // elsewhere. The other lines: the first one, and the empty one.
        let line_ends = memchr::memchr_iter(b'\r', bytes).count();
        if line_ends != lines.len() + 2 || !may_begin(bytes) {
            return Err(FastPathRequest::Header);
        }
        if request.version != Some(1)
            || lines.len() > limits.headers
            || target.len() > limits.target_bytes
            || !is_plain_target(target)
        {
            return Err(FastPathRequest::Start);
        }
        let mut head = Self {
            method,
            target,
            host: "",
            bytes,
            lines,
            wants_close: false,
            length: None,
        };
        for line in lines {
            head.note(line).ok_or(FastPathRequest::Header)?;
        }
        if head.host.is_empty() || head.length.is_some() != has_body {
            return Err(FastPathRequest::Header);
        }
        if head.body_bytes() > limits.body_bytes {
            return Err(FastPathRequest::Body);
        }
        Ok(head)
    }

    /// Takes account of a header; `None` if the request is not mine with it.
    fn note(&mut self, line: &Line<'b>) -> Option<()> {
        let name = line.name;
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            4 if is("host") => {
                let host = std::str::from_utf8(line.value).ok()?;
                let is_first = self.host.is_empty();
                self.host = Some(host).filter(|host| is_first && is_plain_host(host))?;
            }
            10 if is("connection") => {
                let is_close = line.value.eq_ignore_ascii_case(b"close");
                if !is_close && !line.value.eq_ignore_ascii_case(b"keep-alive") {
                    return None;
                }
                self.wants_close |= is_close;
            }
            2 if is("te") => return None,
            5 if is("proxy") => return None,
            6 if is("expect") => return None,
            7 if is("trailer") || is("upgrade") => return None,
            10 if is("keep-alive") => return None,
            14 if is("content-length") => {
                let length = canonical_number(line.value)?;
                if self.length.replace(length).is_some() {
                    return None;
                }
            }
            17 if is("transfer-encoding") => return None,
            length if length > NAME_MAX || is_odd(name) => return None,
            // The layers remove what begins like this, with all their care.
            _ if begins(name, "anteroom-") || begins(name, "proxy-") => return None,
            _ => {}
        }
        Some(())
    }

    /// Returns the headers as decisions see them.
    pub(super) const fn headers(&self) -> HeaderView<'b> {
        HeaderView::of_lines(self.lines)
    }

    pub(super) fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }

    /// Returns the size of the body, which follows the head.
    pub(super) fn body_bytes(&self) -> usize {
        self.length.unwrap_or_default()
    }

    /// Splits the target into the path and the query.
    pub(super) fn path_and_query(&self) -> (&'b str, &'b str) {
        self.target.split_once('?').unwrap_or((self.target, ""))
    }

    /// Appends the head for the origin, without its empty line. What a peer says about the client
    /// is left out unless it is trusted. `about_client`: see [`lines_about`].
    pub(super) fn write(
        &self,
        out: &mut Vec<u8>,
        (client, about_client): (&Client, &[u8]),
        trusted: &TrustedProxies,
    ) {
        let is_left_out = |name: &str| {
            if client.has_trusted_peer {
                forwarded::is_continued(name)
            } else {
                trusted.is_claim(name)
            }
        };
        out.extend_from_slice(self.method.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\nhost: ");
        out.extend_from_slice(self.host.as_bytes());
        out.extend_from_slice(b"\r\n");
        let mut copied = CopiedLines::of(self.bytes);
        for line in self.lines {
            let is = |other: &str| line.name.eq_ignore_ascii_case(other);
            match line.name.len() {
                4 if is("host") => {}
                10 if is("connection") => {}
                14 if is("content-length") => {}
                6 if is("cookie") => {
                    copied.flush(out);
                    let start = out.len();
                    write_name(out, line.name);
                    if cookies::write_without(out, line.value, cookies::PREFIX) {
                        out.extend_from_slice(b"\r\n");
                    } else {
                        out.truncate(start);
                    }
                }
                _ if is_left_out(line.name) => {}
                _ => copied.add(out, line),
            }
        }
        copied.flush(out);
        if let Some(length) = self.length {
            write_length(out, length as u64);
        }
        out.extend_from_slice(about_client);
    }
}

/// Returns the lines that a request of this client gets at last: those about the client, and those
/// about this hop. `headers` are those of the request.
pub(super) fn lines_about(client: &Client, headers: HeaderView<'_>) -> Box<[u8]> {
    let mut lines = Vec::with_capacity(256);
    forwarded::write_lines(&mut lines, client, headers);
    lines.extend_from_slice(b"via: 1.1 anteroom\r\n");
    write_line(&mut lines, loops::NAME, loops::mark_bytes());
    lines.into_boxed_slice()
}

/// Appends a header line with its end.
pub fn write_line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    write_name(out, name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
}

/// Returns a number of at most nine digits, in the only way to write it; `None` for other texts.
fn canonical_number(text: &[u8]) -> Option<usize> {
    let is_canonical = matches!(text, [b'0'] | [b'1'..=b'9', ..]) && text.len() <= 9;
    let is_number = is_canonical && text.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(text).ok().filter(|_| is_number)?;
    text.parse().ok()
}

/// Whether a target is a path and a query that no reader reads in another way.
fn is_plain_target(target: &str) -> bool {
    const PLAIN: [bool; 256] = plain(b"-._~!$&'()*+,;=:@/%?");
    // Brackets are common in queries, and not allowed in paths (RFC 3986, section 3.3).
    let mut is_query = false;
    target.starts_with('/')
        && target.bytes().all(|byte| {
            is_query |= byte == b'?';
            PLAIN[usize::from(byte)] || (is_query && matches!(byte, b'[' | b']'))
        })
}

/// Whether a host is a name or an IPv4 address, perhaps with a port. Others are not mine.
fn is_plain_host(host: &str) -> bool {
    const PLAIN: [bool; 256] = plain(b"-._:");
    let colons = host.bytes().filter(|byte| *byte == b':').count();
    !host.is_empty()
        && !host.starts_with(':')
        && colons <= 1
        && host.bytes().all(|byte| PLAIN[usize::from(byte)])
}

/// Returns a table of letters, digits and these marks.
const fn plain(marks: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
}

/// Whether the name of a header begins like this, in any case.
pub(super) fn begins(name: &str, prefix: &str) -> bool {
    let start = name.as_bytes().get(..prefix.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

#[cfg(test)]
mod tests;
