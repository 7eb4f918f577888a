//! Where does an HTTP/1 request end? A strict reader that looks at the bytes before the parser
//! does.
//!
//! Parsers are kind: they take line feeds for line ends, a length beside chunks, lengths that are
//! said twice. Kind readers in a row disagree, and what one takes for a body the next takes for a
//! request. So nothing gets by here that two readers could read in two ways. Only framing is
//! judged: which lines there are, which characters are in them, and where the body ends (RFC 9112,
//! sections 2 to 7). Which host a request is for, and how much of it there may be, is judged by
//! those behind.
//!
//! A violation is told by its position: at a line feed or behind the data of a chunk, where a NUL
//! in its place is an error to every parser; or where the line of a chunk's size is too long, where
//! a parser may still take it for a part of that line. There it is the end of what comes that is
//! the error: the line, and so the body, never ends.

mod head;

use std::ops::ControlFlow;

use head::{Body, Head, field};

/// Empty lines that may come before a request: old clients send one after a body.
const EMPTY_LINES_MAX: u8 = 2;
/// The longest line of a chunk's size, with its extensions, which nobody uses.
const CHUNK_LINE_MAX: usize = 256;

/// What stands where the screen is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// In a line of this kind.
    Line(Line),
    /// So many bytes of a body with a length are to come.
    Fixed(u64),
    /// So many bytes of a chunk are to come.
    Data(u64),
    /// The line end behind a chunk, and whether its first half was there.
    DataEnd { has_cr: bool },
    /// Nobody can tell what comes.
    Blind,
    /// A request that asks to leave HTTP has come.
    Upgrade,
    /// What came is over: something was wrong.
    Ended,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Line {
    Request,
    Header,
    ChunkSize,
    Trailer,
}

/// Where in a request a connection is, as far as time-outs go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RequestPhase {
    /// Between two requests.
    Between,
    /// In a head.
    Head,
    /// In a body.
    Body,
    /// In a tunnel, or at an end.
    Beyond,
}

/// Something that is not to be passed on.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Violation {
    /// The first byte that must not be passed on as it is.
    pub(crate) at: usize,
    /// Whether it is in a head.
    pub(crate) is_in_head: bool,
}

/// The strict reader of one connection.
#[derive(Debug)]
pub(crate) struct Screen {
    state: State,
    /// What has come of a line that has not ended.
    line: Vec<u8>,
    head: Head,
    heads: u64,
    /// Where raw characters stand in queries of what was looked at last, see [`Screen::raw`].
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

    /// Looks at what came next, up to the end of a head behind which it is not known what comes;
    /// returns how many bytes that were. Behind a wish to leave HTTP that is known when it is
    /// answered, otherwise never.
    ///
    /// # Errors
    ///
    /// [`Violation`]; nothing that comes after it is looked at any more.
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

    /// Where `"`, `<` and `>` stand in queries of what was looked at last. They do not change where
    /// a request ends, but the parser refuses them (http 1.5, `PathAndQuery`). Browsers write them
    /// encoded, so they are passed on so.
    pub(crate) fn raw(&self) -> &[usize] {
        &self.raw
    }

    pub(crate) fn place(&self) -> RequestPhase {
        match self.state {
            State::Line(Line::Request) if self.line.is_empty() => RequestPhase::Between,
            State::Line(Line::Request | Line::Header) => RequestPhase::Head,
            State::Line(_) | State::Fixed(_) | State::Data(_) | State::DataEnd { .. } => {
                RequestPhase::Body
            }
            State::Blind | State::Upgrade | State::Ended => RequestPhase::Beyond,
        }
    }

    /// How many heads have come.
    pub(crate) const fn heads(&self) -> u64 {
        self.heads
    }

    /// Whether the last head asks to leave HTTP. Until it is answered, nothing is looked at.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.state == State::Upgrade
    }

    /// The connection goes on as HTTP.
    pub(crate) fn resume(&mut self) {
        self.state = State::Line(Line::Request);
    }

    /// Whether nothing more is to be read.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended | State::Blind)
    }

    /// Takes some bytes, at least one; or says which is wrong.
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
            // The memory is kept for the next one.
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

    /// Takes note of raw characters in the query of a request line, or of the next part of one.
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

    /// What comes after a line, which is given up to its line feed; `None` if it is wrong.
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

/// What comes after the line of a chunk's size.
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

/// Whether a field may come after a body. What frames, routes or authenticates a request would mean
/// something else to a reader that puts trailers among the headers (RFC 9110, section 6.5.1).
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

/// How many bytes belong to what has `left` to come, and what is left then.
fn take(bytes: &[u8], left: u64) -> (usize, u64) {
    let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    (taken, left - taken as u64)
}

#[cfg(test)]
mod tests;
