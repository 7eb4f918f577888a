//! Strict reader of HTTP/1 request boundaries, which sees the bytes before the parser does.
//!
//! Parsers are lenient: they accept bare line feeds, a length beside chunks, repeated lengths.
//! Lenient readers in a row disagree, and what one takes for a body the next takes for a request.
//! So nothing passes here that two readers could read in two ways. Only framing is checked: lines,
//! their characters, and the end of the body (RFC 9112, sections 2 to 7). Hosts and size limits are
//! checked later.
//!
//! A violation is reported by its position: at a line feed or after the data of a chunk, where a
//! NUL in its place is an error to every parser. If the line of a chunk's size is too long, a
//! parser may accept the NUL as part of that line. There the end of the stream is the error: the
//! line, and so the body, never ends.

mod head;

use std::ops::ControlFlow;

use head::{Body, Head, field};

/// Maximum empty lines before a request: old clients send one after a body.
const EMPTY_LINES_MAX: u8 = 2;
/// Maximum length of the line of a chunk's size, with its extensions, which are not used in
/// practice.
const CHUNK_LINE_MAX: usize = 256;

/// Position of the reader within the stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Within a line of this kind.
    Line(Line),
    /// Within a body with a length: bytes that remain.
    Fixed(u64),
    /// Within a chunk: bytes that remain.
    Data(u64),
    /// Line end after a chunk; `has_cr` if its first half was there.
    DataEnd { has_cr: bool },
    /// After a head whose body has no known end.
    Blind,
    /// After a request for an upgrade.
    Upgrade,
    /// After a violation.
    Ended,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Line {
    Request,
    Header,
    ChunkSize,
    Trailer,
}

/// Phase of a request, for timeouts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RequestPhase {
    /// Between two requests.
    Between,
    /// Within a head.
    Head,
    /// Within a body.
    Body,
    /// Within a tunnel, or after the end.
    Beyond,
}

/// Violation of the framing, which must not be passed on.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Violation {
    /// Position of the first byte that must not be passed on.
    pub(crate) at: usize,
    /// Whether the violation is in a head.
    pub(crate) is_in_head: bool,
}

/// Strict reader of one connection.
#[derive(Debug)]
pub(crate) struct Screen {
    state: State,
    /// Beginning of a line that has not ended.
    line: Vec<u8>,
    head: Head,
    heads: u64,
    /// Positions of raw characters in queries, see [`Screen::raw`].
    raw: Vec<usize>,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Line(Line::Request),
            line: Vec::new(),
            head: Head::default(),
            heads: 0,
            raw: Vec::new(),
        }
    }

    /// Checks the next bytes, up to the end of a head after which the framing is unknown; returns
    /// their number. After a request for an upgrade the framing is known with the response,
    /// otherwise never.
    ///
    /// # Errors
    ///
    /// [`Violation`]; no bytes after it are checked.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> Result<usize, Violation> {
        let mut at = 0;
        self.raw.clear();
        while at < bytes.len() && !matches!(self.state, State::Upgrade | State::Blind) {
            let known = self.raw.len();
            let step = self.step(&bytes[at..]);
            self.raw[known..].iter_mut().for_each(|found| *found += at);
            match step {
                ControlFlow::Continue(taken) => at += taken,
                ControlFlow::Break(wrong) => {
                    let is_in_head =
                        matches!(self.state, State::Line(Line::Request | Line::Header));
                    self.state = State::Ended;
                    return Err(Violation {
                        at: at + wrong,
                        is_in_head,
                    });
                }
            }
        }
        Ok(at)
    }

    /// Returns the positions of `"`, `<` and `>` in queries of the bytes of the last call. They do
    /// not change request boundaries, but the parser rejects them (http 1.5, `PathAndQuery`).
    /// Browsers encode them, so the connection passes them on encoded.
    pub(crate) fn raw(&self) -> &[usize] {
        &self.raw
    }

    pub(crate) fn phase(&self) -> RequestPhase {
        match self.state {
            State::Line(Line::Request) if self.line.is_empty() => RequestPhase::Between,
            State::Line(Line::Request | Line::Header) => RequestPhase::Head,
            State::Line(_) | State::Fixed(_) | State::Data(_) | State::DataEnd { .. } => {
                RequestPhase::Body
            }
            State::Blind | State::Upgrade | State::Ended => RequestPhase::Beyond,
        }
    }

    /// Returns the number of complete heads.
    pub(crate) const fn heads(&self) -> u64 {
        self.heads
    }

    /// Whether the last head asks for an upgrade. Until its response, no bytes are checked.
    pub(crate) fn awaits_response(&self) -> bool {
        self.state == State::Upgrade
    }

    /// Resumes HTTP after a rejected upgrade.
    pub(crate) fn resume(&mut self) {
        self.state = State::Line(Line::Request);
    }

    /// Whether the stream has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended | State::Blind)
    }

    /// Consumes at least one byte, or returns the position of the violation.
    fn step(&mut self, bytes: &[u8]) -> ControlFlow<usize, usize> {
        match self.state {
            State::Line(line) => self.line(line, bytes),
            State::Fixed(left) => {
                let (taken, left) = take(bytes, left);
                self.state = if left == 0 {
                    State::Line(Line::Request)
                } else {
                    State::Fixed(left)
                };
                ControlFlow::Continue(taken)
            }
            State::Data(left) => {
                let (taken, left) = take(bytes, left);
                self.state = if left == 0 {
                    State::DataEnd { has_cr: false }
                } else {
                    State::Data(left)
                };
                ControlFlow::Continue(taken)
            }
            State::DataEnd { has_cr } => {
                self.state = match (has_cr, bytes[0]) {
                    (false, b'\r') => State::DataEnd { has_cr: true },
                    (true, b'\n') => State::Line(Line::ChunkSize),
                    _ => return ControlFlow::Break(0),
                };
                ControlFlow::Continue(1)
            }
            State::Upgrade | State::Blind | State::Ended => ControlFlow::Break(0),
        }
    }

    fn line(&mut self, kind: Line, bytes: &[u8]) -> ControlFlow<usize, usize> {
        let end = memchr::memchr(b'\n', bytes);
        if kind == Line::ChunkSize {
            let room = (CHUNK_LINE_MAX + "\r".len()).saturating_sub(self.line.len());
            if end.unwrap_or(bytes.len()) > room {
                return ControlFlow::Break(room);
            }
        }
        if kind == Line::Request {
            self.note_raw(&bytes[..end.unwrap_or(bytes.len())]);
        }
        let Some(end) = end else {
            self.line.extend_from_slice(bytes);
            return ControlFlow::Continue(bytes.len());
        };
        let mut line = std::mem::take(&mut self.line);
        let next = if line.is_empty() {
            self.ended_line(kind, &bytes[..end])
        } else {
            line.extend_from_slice(&bytes[..end]);
            let next = self.ended_line(kind, &line);
            // The buffer is reused for the next line.
            line.clear();
            self.line = line;
            next
        };
        match next {
            Some(next) => {
                self.state = next;
                ControlFlow::Continue(end + 1)
            }
            None => ControlFlow::Break(end),
        }
    }

    /// Records raw characters in the query of a request line, or of its next part.
    fn note_raw(&mut self, bytes: &[u8]) {
        let found = memchr::memchr3_iter(b'"', b'<', b'>', bytes);
        let Some(last) = found.clone().next_back() else {
            return;
        };
        let query_at = match memchr::memchr(b'?', &self.line) {
            Some(_) => 0,
            None => memchr::memchr(b'?', bytes).unwrap_or(last + 1),
        };
        self.raw
            .extend(found.filter(|at| *at > query_at || query_at == 0));
    }

    /// Returns the state after a line, which includes its line feed; `None` if it is invalid.
    fn ended_line(&mut self, kind: Line, line: &[u8]) -> Option<State> {
        let line = line.strip_suffix(b"\r")?;
        match kind {
            Line::Request if line.is_empty() => {
                self.head.empty_lines += 1;
                (self.head.empty_lines <= EMPTY_LINES_MAX).then_some(State::Line(kind))
            }
            Line::Request => {
                self.head = Head::default();
                self.head.read_request(line)?;
                Some(State::Line(Line::Header))
            }
            Line::Header if line.is_empty() => {
                let body = std::mem::take(&mut self.head).follow()?;
                self.heads += 1;
                Some(match body {
                    Body::None => State::Line(Line::Request),
                    Body::Fixed(length) => State::Fixed(length),
                    Body::Chunks => State::Line(Line::ChunkSize),
                    Body::Unknown => State::Blind,
                    Body::Upgrade => State::Upgrade,
                })
            }
            Line::Header => {
                let (name, value) = field(line)?;
                self.head.read_field(name, value)?;
                Some(State::Line(kind))
            }
            Line::ChunkSize => chunk_size(line),
            Line::Trailer if line.is_empty() => Some(State::Line(Line::Request)),
            Line::Trailer => {
                let (name, _) = field(line)?;
                may_trail(name).then_some(State::Line(kind))
            }
        }
    }
}

/// Returns the state after the line of a chunk's size.
fn chunk_size(line: &[u8]) -> Option<State> {
    let end = memchr::memchr(b';', line).unwrap_or(line.len());
    let (digits, extension) = line.split_at(end);
    let is_sane = (1..=16).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_hexdigit)
        && extension.iter().all(|byte| (b' '..0x7f).contains(byte));
    if !is_sane {
        return None;
    }
    let digits = std::str::from_utf8(digits).ok()?;
    match u64::from_str_radix(digits, 16).ok()? {
        0 => Some(State::Line(Line::Trailer)),
        size => (size <= i64::MAX.unsigned_abs()).then_some(State::Data(size)),
    }
}

/// Whether a field may be a trailer. Fields of framing, routing or authentication would mean
/// something else to a reader that merges trailers into the headers (RFC 9110, section 6.5.1).
fn may_trail(name: &[u8]) -> bool {
    const NEVER: [&[u8]; 12] = [
        b"authorization",
        b"connection",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"cookie",
        b"expect",
        b"host",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ];
    !NEVER.iter().any(|never| name.eq_ignore_ascii_case(never))
}

/// Returns how many bytes belong to a part with `left` bytes remaining, and what remains after
/// them.
fn take(bytes: &[u8], left: u64) -> (usize, u64) {
    let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    (taken, left - taken as u64)
}

#[cfg(test)]
mod tests;
