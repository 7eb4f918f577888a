//! Percent-decoding of a path, one pass per call.
//!
//! Input that must not be decoded is an error ([`BadPathError`]). Text that is not an escape stays
//! unchanged (`%zz`, a `%` at the end).

use super::error::BadPathError;

/// Treatment of an encoded `/` or `\`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Separators {
    /// Literal `%2F` or `%5C`, in upper case.
    Literal,
    /// Separator like any other.
    Decoded,
}

/// Treatment of an encoded control byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Controls {
    /// Error of the path.
    Refused,
    /// Decoded byte: the caller cuts the path there.
    Kept,
}

/// Decodes once. Bytes that are not UTF-8 become U+FFFD, which no room's path has.
pub(super) fn decode(
    path: &str,
    separators: Separators,
    controls: Controls,
) -> Result<String, BadPathError> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let Some((code, after)) = escape(rest) else {
            decoded.push(*first);
            rest = tail;
            continue;
        };
        rest = after;
        match (code, separators) {
            (Code::Byte(0..0x20 | 0x7f), _) if controls == Controls::Refused => {
                return Err(BadPathError::Control);
            }
            (Code::Byte(b'/'), Separators::Literal) => decoded.extend_from_slice(b"%2F"),
            (Code::Byte(b'\\'), Separators::Literal) => decoded.extend_from_slice(b"%5C"),
            (Code::Byte(byte), _) => decoded.push(byte),
            (Code::Wide(character), _) => {
                decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    if has_overlong(&decoded) {
        return Err(BadPathError::Overlong);
    }
    Ok(match String::from_utf8(decoded) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Meaning of an escape.
enum Code {
    /// Byte of `%XX`, or of `%u00XX` below 0x80.
    Byte(u8),
    /// Character of `%uHHHH` from 0x80.
    Wide(char),
}

/// Parses the escape at the start of `bytes`.
fn escape(bytes: &[u8]) -> Option<(Code, &[u8])> {
    let [b'%', rest @ ..] = bytes else {
        return None;
    };
    if let [b'u' | b'U', a, b, c, d, rest @ ..] = rest {
        let high = hex(*a)? << 4 | hex(*b)?;
        let low = hex(*c)? << 4 | hex(*d)?;
        if high == 0 && low < 0x80 {
            return Some((Code::Byte(low), rest));
        }
        let code = u32::from(high) << 8 | u32::from(low);
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        return Some((Code::Wide(character), rest));
    }
    let [a, b, rest @ ..] = rest else {
        return None;
    };
    Some((Code::Byte(hex(*a)? << 4 | hex(*b)?), rest))
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Whether some character is overlong; lenient decoders read `C0 AF` as `/`. Latin-1 text does not
/// trigger this unless it has an `À` or `Á` before a symbol.
fn has_overlong(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| {
        matches!(
            pair,
            [0xc0 | 0xc1, 0x80..=0xbf] | [0xe0, 0x80..=0x9f] | [0xf0, 0x80..=0x8f]
        )
    })
}
