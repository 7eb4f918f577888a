//! Encoding of the meta commands of memcached and decoding of its replies.
//!
//! Deliberately absent: connections, and the meaning of a reply for a limit.
//!
//! Keys ([`crate::keys`]) contain no outside bytes, so nothing is escaped here.

/// Longest line of a reply. Ours have a length and a number; error messages are shorter, too.
const LINE_BYTES_MAX: usize = 2_048;
/// Longest value that is read: the default maximum of a server.
pub(crate) const VALUE_BYTES_MAX: usize = 1 << 20;
/// Characters of an error message that are kept.
const ERROR_CHARS_MAX: usize = 200;

/// Command to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command<'k> {
    /// Does nothing; the server replies.
    Hello,
    /// Adds to a number. A missing one starts at zero and gets an expiry.
    Add { key: &'k str, by: u32, exptime: u64 },
    /// Subtracts from an existing number, down to zero.
    Subtract { key: &'k str, by: u32 },
    /// Reads a value.
    Get { key: &'k str },
    /// Writes a value if it is still the one that was read.
    Put {
        key: &'k str,
        value: &'k [u8],
        expected: Parsed,
        exptime: u64,
    },
}

/// Value that was read, for a compare-and-swap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Parsed {
    /// The key had no value.
    Nothing,
    /// Unique number of the value.
    Value(u64),
}

/// Reply of a server to a command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Reply {
    /// The server is ready.
    Hello,
    /// Value that was read, or the new value of a number.
    Value {
        bytes: Vec<u8>,
        /// Unique number of the value, if it was requested.
        unique: Option<u64>,
    },
    /// The value was written.
    Done,
    /// The key has no value.
    Nothing,
    /// The value was not written: there is another one.
    Conflict,
    /// Error message of the server.
    Error(String),
}

/// Error of bytes that are no reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// The line is too long.
    #[error("a reply has a line of more than {LINE_BYTES_MAX} bytes")]
    LongLine,
    /// The value is too long.
    #[error("a reply has a value of more than {VALUE_BYTES_MAX} bytes")]
    LongValue,
    /// The bytes follow another protocol.
    #[error("a reply has an unknown format")]
    Form,
}

impl Command<'_> {
    /// Appends the command as it is sent.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let line = match self {
            Self::Hello => "mn\r\n".to_owned(),
            // A new number starts at `by`, as the server adds nothing when it creates one.
            Self::Add { key, by, exptime } => format!("ma {key} v N{exptime} J{by} D{by}\r\n"),
            Self::Subtract { key, by } => format!("ma {key} v MD D{by}\r\n"),
            Self::Get { key } => format!("mg {key} v c\r\n"),
            Self::Put {
                key,
                value,
                expected,
                exptime,
            } => {
                let size = value.len();
                match expected {
                    Parsed::Nothing => format!("ms {key} {size} T{exptime} ME\r\n"),
                    Parsed::Value(unique) => format!("ms {key} {size} T{exptime} C{unique}\r\n"),
                }
            }
        };
        out.extend_from_slice(line.as_bytes());
        if let Self::Put { value, .. } = self {
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }
}

impl Reply {
    /// Returns the value as a number. Servers leave trailing spaces after a number has become
    /// shorter.
    pub(crate) fn number(&self) -> Option<u64> {
        let Self::Value { bytes, .. } = self else {
            return None;
        };
        digits(bytes.trim_ascii_end())
    }

    /// Reads the first reply of `bytes` and returns it with its length; `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// [`ProtocolError`] if the bytes cannot become a reply.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, ProtocolError> {
        let head = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
        let Some(end) = memchr::memchr(b'\n', head) else {
            let is_over = head.len() == LINE_BYTES_MAX;
            return if is_over {
                Err(ProtocolError::LongLine)
            } else {
                Ok(None)
            };
        };
        let line = head[..end].strip_suffix(b"\r").ok_or(ProtocolError::Form)?;
        let tail = end + 1;
        let (word, rest) = match memchr::memchr(b' ', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &line[line.len()..]),
        };
        let short = match word {
            b"HD" => Self::Done,
            b"EN" | b"NF" => Self::Nothing,
            b"EX" | b"NS" => Self::Conflict,
            b"MN" => Self::Hello,
            b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" => Self::Error(error_text(line)),
            b"VA" => return read_value(rest, &bytes[tail..], tail),
            _ => return Err(ProtocolError::Form),
        };
        Ok(Some((short, tail)))
    }
}

/// Reads a value: `rest` is the rest of its line, `bytes` are those after the line.
fn read_value(
    rest: &[u8],
    bytes: &[u8],
    tail: usize,
) -> Result<Option<(Reply, usize)>, ProtocolError> {
    let mut parts = rest.split(|byte| *byte == b' ');
    let size = parts.next().and_then(digits).ok_or(ProtocolError::Form)?;
    let size = usize::try_from(size).map_err(|_| ProtocolError::LongValue)?;
    if size > VALUE_BYTES_MAX {
        return Err(ProtocolError::LongValue);
    }
    let mut unique = None;
    for part in parts {
        if let Some(number) = part.strip_prefix(b"c") {
            unique = Some(digits(number).ok_or(ProtocolError::Form)?);
        }
    }
    let Some(value) = bytes.get(..size + 2) else {
        return Ok(None);
    };
    let value = value.strip_suffix(b"\r\n").ok_or(ProtocolError::Form)?;
    let reply = Reply::Value {
        bytes: value.to_vec(),
        unique,
    };
    Ok(Some((reply, tail + size + 2)))
}

/// Parses a number that consists of digits only.
fn digits(bytes: &[u8]) -> Option<u64> {
    let is_number = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    let text = is_number.then(|| std::str::from_utf8(bytes).ok())?;
    text?.parse().ok()
}

fn error_text(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let printable = text.chars().filter(|c| !c.is_control());
    printable.take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_read(text: &str, expected: &Reply) {
        for cut in 0..text.len() {
            let read = Reply::read(&text.as_bytes()[..cut]);
            assert_eq!(read, Ok(None), "{text:?} up to {cut}");
        }
        let more = format!("{text}HD\r\n");
        let read = Reply::read(more.as_bytes());
        assert_eq!(read, Ok(Some((expected.clone(), text.len()))), "{text:?}");
    }

    fn value(text: &str, unique: Option<u64>) -> Reply {
        let bytes = text.as_bytes().to_vec();
        Reply::Value { bytes, unique }
    }

    #[test]
    fn a_reply_is_read_once_it_is_complete_and_no_further() {
        check_read("HD\r\n", &Reply::Done);
        check_read("MN\r\n", &Reply::Hello);
        check_read("EN\r\n", &Reply::Nothing);
        check_read("NF\r\n", &Reply::Nothing);
        check_read("EX\r\n", &Reply::Conflict);
        check_read("NS\r\n", &Reply::Conflict);
        check_read("VA 1\r\n3\r\n", &value("3", None));
        check_read("VA 5 c12 t59\r\nhe\r\no\r\n", &value("he\r\no", Some(12)));
        check_read("VA 0 c1\r\n\r\n", &value("", Some(1)));
        let error = Reply::Error("SERVER_ERROR out of memory".to_owned());
        check_read("SERVER_ERROR out of memory\r\n", &error);
        check_read("ERROR\r\n", &Reply::Error("ERROR".to_owned()));
    }

    #[test]
    fn invalid_bytes_are_rejected_however_much_more_comes() {
        let long_line = "V".repeat(LINE_BYTES_MAX);
        for (text, expected) in [
            ("HTTP/1.1 400 Bad Request\r\n", ProtocolError::Form),
            ("HD\n", ProtocolError::Form),
            ("VA\r\n", ProtocolError::Form),
            ("VA x\r\n", ProtocolError::Form),
            ("VA -1\r\n", ProtocolError::Form),
            ("VA 1 cx\r\n3\r\n", ProtocolError::Form),
            ("VA 1\r\n345", ProtocolError::Form),
            ("VA 1048577\r\n", ProtocolError::LongValue),
            ("VA 18446744073709551615\r\n", ProtocolError::LongValue),
            (&long_line, ProtocolError::LongLine),
        ] {
            assert_eq!(Reply::read(text.as_bytes()), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn a_number_may_have_trailing_spaces_and_nothing_else() {
        assert_eq!(value("9 ", None).number(), Some(9));
        assert_eq!(value("18446744073709551615", None).number(), Some(u64::MAX));
        for text in ["", " ", " 9", "9x", "-9", "+9", "18446744073709551616"] {
            assert_eq!(value(text, None).number(), None, "{text:?}");
        }
        assert_eq!(Reply::Done.number(), None);
    }

    #[test]
    fn commands_are_encoded_as_in_the_protocol() {
        let check = |command: Command<'_>, expected: &str| {
            let mut out = Vec::new();
            command.write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        let (key, exptime) = ("a:1", 60);
        check(Command::Hello, "mn\r\n");
        check(Command::Get { key }, "mg a:1 v c\r\n");
        check(Command::Subtract { key, by: 2 }, "ma a:1 v MD D2\r\n");
        let add = Command::Add {
            key,
            by: 3,
            exptime,
        };
        check(add, "ma a:1 v N60 J3 D3\r\n");
        let put = |expected| Command::Put {
            key,
            value: b"1g 7 0",
            expected,
            exptime,
        };
        check(put(Parsed::Nothing), "ms a:1 6 T60 ME\r\n1g 7 0\r\n");
        check(put(Parsed::Value(9)), "ms a:1 6 T60 C9\r\n1g 7 0\r\n");
    }

    #[test]
    fn an_error_message_is_truncated_and_without_control_characters() {
        let line = format!("CLIENT_ERROR \u{1b}[31m{}\r\n", "x".repeat(1_000));
        let read = Reply::read(line.as_bytes()).unwrap();
        let Some((Reply::Error(text), _)) = read else {
            panic!("{read:?}");
        };
        assert!(text.starts_with("CLIENT_ERROR [31mxx"), "{text}");
        assert_eq!(text.chars().count(), ERROR_CHARS_MAX);
    }
}
