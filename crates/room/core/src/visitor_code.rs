//! Short code of a visitor, which the waiting page shows and people read to each other.

use core::fmt;
use core::str::FromStr;

use crate::id::VisitorId;

/// Begin of a visitor's id: `3F9A-12C4`. Among a million visitors, one in four thousand shares its
/// code with another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VisitorCode(pub [u8; 4]);

/// Error about a text that is no code of a visitor.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "a code looks like 3F9A-12C4: eight of 0-9 and A-F, as at the bottom of the visitor's \
     waiting page"
)]
pub struct NoVisitorCode;

impl VisitorCode {
    /// Returns the code of a visitor.
    #[must_use]
    pub const fn of(visitor: VisitorId) -> Self {
        let [a, b, c, d, ..] = visitor.0;
        Self([a, b, c, d])
    }

    /// Whether this is the code of a visitor.
    #[must_use]
    pub fn is_of(self, visitor: VisitorId) -> bool {
        Self::of(visitor) == self
    }
}

impl fmt::Display for VisitorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a:02X}{b:02X}-{c:02X}{d:02X}")
    }
}

impl FromStr for VisitorCode {
    type Err = NoVisitorCode;

    /// Reads a code as people write it: in small letters as well, with or without the hyphen.
    fn from_str(text: &str) -> Result<Self, NoVisitorCode> {
        let text = text.trim();
        let digits = match text.split_once('-') {
            Some((first, rest)) if first.len() == 4 && rest.len() == 4 => [first, rest],
            None if text.len() == 8 && text.is_ascii() => [&text[..4], &text[4..]],
            _ => return Err(NoVisitorCode),
        };
        let mut code = [0; 4];
        for (half, bytes) in digits.iter().zip(code.chunks_mut(2)) {
            // A number may have a sign, a code has none.
            let is_hex = half.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = u16::from_str_radix(half, 16).ok().filter(|_| is_hex);
            bytes.copy_from_slice(&number.ok_or(NoVisitorCode)?.to_be_bytes());
        }
        Ok(Self(code))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn a_code_is_read_as_people_write_it() {
        for text in ["3F9A-12C4", "3f9a-12c4", "3F9A12C4", " 3f9A12c4 "] {
            let code: VisitorCode = text.parse().unwrap();
            assert_eq!(code, VisitorCode([0x3f, 0x9a, 0x12, 0xc4]));
            assert_eq!(code.to_string(), "3F9A-12C4");
        }
    }

    #[test]
    fn another_text_is_no_code() {
        let texts = [
            "",
            "-",
            "3F9A",
            "3F9A-12C",
            "3F9A-12C45",
            "3F9-A12C4",
            "3F9A-12CG",
            "+F9A-12C4",
            "3F9A+12C4",
            "3F9A--2C4",
            "\u{e9}\u{e9}\u{e9}\u{e9}",
            "3F9A 12C4",
        ];
        for text in texts {
            assert_eq!(text.parse::<VisitorCode>(), Err(NoVisitorCode), "{text}");
        }
    }
}
