//! Framing of a request: the fields of a head that decide what follows it.

/// Body after a head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Body {
    /// Empty body: the next request follows.
    None,
    /// Body of so many bytes.
    Fixed(u64),
    /// Body in chunks.
    Chunks,
    /// Body whose end is unknown.
    Unknown,
    /// Upgrade: no bytes may follow before its response.
    Upgrade,
}

/// Framing fields of a head.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) empty_lines: u8,
    is_http10: bool,
    is_connect: bool,
    length: Option<u64>,
    coding: Option<Coding>,
    has_upgrade: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Coding {
    Chunked,
    /// Unknown coding, or several codings.
    Foreign,
}

impl Head {
    /// Parses a request line: exactly `METHOD SP target SP HTTP/1.x`.
    pub(super) fn read_request(&mut self, line: &[u8]) -> Option<()> {
        let mut parts = line.split(|byte| *byte == b' ');
        let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
        // No fragment: browsers do not send one, and readers differ in whether it counts.
        let is_target = |byte: u8| byte > b' ' && byte != 0x7f && byte != b'#';
        let is_sane = parts.next().is_none()
            && is_token(method)
            && !target.is_empty()
            && are_all(target, is_target);
        self.is_http10 = match version {
            b"HTTP/1.1" => false,
            b"HTTP/1.0" => true,
            _ => return None,
        };
        self.is_connect = method == b"CONNECT";
        is_sane.then_some(())
    }

    pub(super) fn read_field(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = length(value)?;
                self.length.replace(length).is_none().then_some(())
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                // Not every reader accepts a tab as a space.
                if value.contains(&b'\t') {
                    return None;
                }
                let value = value.trim_ascii();
                let coding = if value.eq_ignore_ascii_case(b"chunked") {
                    Coding::Chunked
                } else if value.eq_ignore_ascii_case(b"identity") || !is_list(value) {
                    return None;
                } else {
                    Coding::Foreign
                };
                self.coding.replace(coding).is_none().then_some(())
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => {
                self.has_upgrade = true;
                Some(())
            }
            _ => Some(()),
        }
    }

    /// Returns the body after this head; `None` if it is ambiguous.
    pub(super) fn follow(self) -> Option<Body> {
        match (self.coding, self.length) {
            (Some(_), Some(_)) => None,
            (Some(_), None) if self.is_http10 => None,
            // The intake rejects it with a response; the end of its body is unknown.
            (Some(Coding::Foreign), None) => Some(Body::Unknown),
            (Some(Coding::Chunked), None) => Some(Body::Chunks),
            (None, Some(length)) if length > 0 => Some(Body::Fixed(length)),
            _ if self.is_connect => Some(Body::Unknown),
            _ if self.has_upgrade => Some(Body::Upgrade),
            _ => Some(Body::None),
        }
    }
}

/// Splits a field line into name and value.
pub(super) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    // A name that begins or ends with a space, as in folded lines, is not a token.
    let is_visible = |byte: u8| (byte >= b' ' && byte != 0x7f) || byte == b'\t';
    (is_token(name) && are_all(value, is_visible)).then_some((name, value))
}

/// Whether a condition is true for all bytes. Unlike `all` of an iterator it does not stop early,
/// so the compiler vectorizes it.
fn are_all(bytes: &[u8], is_one: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(true, |all, byte| all & is_one(*byte))
}

fn length(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (length <= i64::MAX.unsigned_abs()).then_some(length)
}

/// Whether a value could be a list of codings: `gzip, chunked`.
fn is_list(value: &[u8]) -> bool {
    let mut codings = value.split(|byte| *byte == b',');
    codings.all(|coding| is_token(coding.trim_ascii()))
}

fn is_token(name: &[u8]) -> bool {
    const TOKEN: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            table[byte as usize] = byte.is_ascii_alphanumeric();
            byte += 1;
        }
        let marks = b"!#$%&'*+-.^_`|~";
        let mut at = 0;
        while at < marks.len() {
            table[marks[at] as usize] = true;
            at += 1;
        }
        table
    };
    !name.is_empty() && name.iter().all(|byte| TOKEN[usize::from(*byte)])
}
