//! Body of an origin's response: where it ends, and what the client gets of it.
//!
//! A body with a length goes through as it is. Chunks are taken apart and written anew: extensions
//! and trailers are dropped, and a client sees only sizes that were understood. A body that ends
//! with its connection becomes chunks.

use std::io::Write as _;

/// End of the body of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Framing {
    /// No body.
    None,
    /// Number of bytes.
    Length(u64),
    /// Last chunk.
    Chunks,
    /// End of the connection.
    UntilClose,
}

/// Longest line of a chunk's size, with its extensions, and longest trailer.
const LINE_MAX: usize = 1_024;
/// Most bytes of all trailers.
const TRAILERS_MAX: usize = 16 * 1_024;

/// Reader of one body.
#[derive(Debug)]
pub(super) enum BodyReader {
    /// Bytes that remain.
    Length(u64),
    Chunks(Chunks),
    UntilClose,
}

/// State of a body in chunks.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    state: ChunkState,
    /// Beginning of a line that has not ended.
    line: Vec<u8>,
    trailer_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum ChunkState {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    Ended,
}

/// Body that breaks the rules, so that its end is unknown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Malformed;

/// Progress of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Progress {
    /// More bytes belong to the body.
    Open,
    /// The body ended after so many of the bytes.
    Ended(usize),
}

impl BodyReader {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Length(0),
            Framing::Length(length) => Self::Length(length),
            Framing::Chunks => Self::Chunks(Chunks::default()),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Reads the next bytes of the body, and appends what the client gets.
    pub(super) fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Progress, Malformed> {
        match self {
            Self::Length(left) => {
                let count =
                    usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                out.extend_from_slice(&bytes[..count]);
                *left -= count as u64;
                Ok(if *left == 0 {
                    Progress::Ended(count)
                } else {
                    Progress::Open
                })
            }
            Self::Chunks(chunks) => chunks.read(bytes, out),
            Self::UntilClose => {
                write_chunk(out, bytes);
                Ok(Progress::Open)
            }
        }
    }

    /// Ends the body with its connection, and appends what the client gets then.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match self {
            Self::UntilClose => {
                out.extend_from_slice(LAST_CHUNK);
                Ok(())
            }
            Self::Length(_) | Self::Chunks(_) => Err(Malformed),
        }
    }
}

/// Last chunk of a body, without trailers.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends a chunk; nothing if there are no bytes, because that would be the last one.
pub(super) fn write_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    write!(out, "{:x}\r\n", bytes.len()).expect("writing to a Vec cannot fail");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

impl Chunks {
    fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Progress, Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += match self.state {
                ChunkState::Data(left) => {
                    let count =
                        usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                    write_chunk(out, &rest[..count]);
                    let left = left - count as u64;
                    self.state = if left == 0 {
                        ChunkState::DataEnd
                    } else {
                        ChunkState::Data(left)
                    };
                    count
                }
                ChunkState::Ended => break,
                ChunkState::Size | ChunkState::DataEnd | ChunkState::Trailer => {
                    self.read_line(rest)?
                }
            };
            if self.state == ChunkState::Ended {
                out.extend_from_slice(LAST_CHUNK);
                return Ok(Progress::Ended(at));
            }
        }
        Ok(Progress::Open)
    }

    /// Reads up to the end of a line. Returns the number of bytes.
    fn read_line(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let end = memchr::memchr(b'\n', bytes);
        let part = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
        if self.line.len() + part.len() > LINE_MAX {
            return Err(Malformed);
        }
        if end.is_none() {
            self.line.extend_from_slice(part);
            return Ok(part.len());
        }
        if self.line.is_empty() {
            self.end_line(part)?;
        } else {
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(part);
            self.end_line(&line)?;
        }
        Ok(part.len())
    }

    fn end_line(&mut self, line: &[u8]) -> Result<(), Malformed> {
        let line = line.strip_suffix(b"\r\n").ok_or(Malformed)?;
        if memchr::memchr(b'\r', line).is_some() {
            return Err(Malformed);
        }
        self.state = match self.state {
            ChunkState::Size => match size(line).ok_or(Malformed)? {
                0 => ChunkState::Trailer,
                size => ChunkState::Data(size),
            },
            ChunkState::DataEnd if line.is_empty() => ChunkState::Size,
            ChunkState::Trailer if line.is_empty() => ChunkState::Ended,
            ChunkState::Trailer if memchr::memchr(b':', line).is_none() => return Err(Malformed),
            ChunkState::Trailer => {
                self.trailer_bytes += line.len();
                if self.trailer_bytes > TRAILERS_MAX {
                    return Err(Malformed);
                }
                ChunkState::Trailer
            }
            ChunkState::Data(_) | ChunkState::DataEnd | ChunkState::Ended => return Err(Malformed),
        };
        Ok(())
    }
}

/// Parses the line of a chunk's size: 1 to 16 hex digits, perhaps with extensions.
fn size(line: &[u8]) -> Option<u64> {
    let end = memchr::memchr(b';', line).unwrap_or(line.len());
    // Blanks before extensions are bad whitespace that a reader has to remove (RFC 9112, 7.1.1).
    let digits = line[..end].trim_ascii_end();
    let is_sane = (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_sane)?;
    let size = u64::from_str_radix(digits, 16).ok()?;
    (size <= i64::MAX.unsigned_abs()).then_some(size)
}

#[cfg(test)]
mod tests;
