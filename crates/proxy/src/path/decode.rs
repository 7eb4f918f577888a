//! What does a path say once its `%XX` are decoded? One pass; who wants two calls twice.
//!
//! It refuses what must not be decoded ([`BadPathError`]) and leaves alone what is not an escape
//! (`%zz`, a `%` at the end).

use super::error::BadPathError;

/// What becomes of an encoded `/` or `\`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Separators {
    /// Stays `%2F` or `%5C`, in capitals.
    Literal,
    /// Becomes a separator like any other.
    Decoded,
}

/// What becomes of an encoded control byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Controls {
    /// The path is refused.
    Refused,
    /// It stays, decoded: the caller cuts the path there.
    Kept,
}

/// Decodes once. Bytes that are not UTF-8 become U+FFFD: no room's path holds that.
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

/// What an escape stands for.
enum Code {
    /// `%XX`, or `%u00XX` below 0x80.
    Byte(u8),
    /// `%uHHHH` above: a character, not a byte of one.
    Wide(char),
}

/// Reads the escape that `bytes` begins with.
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

/// Whether some character is spelled longer than it needs to be; lenient decoders take `C0 AF`
/// for `/`. Latin-1 text does not trip this unless it has an `À` or `Á` before a symbol.
fn has_overlong(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| {
        matches!(
            pair,
            [0xc0 | 0xc1, 0x80..=0xbf] | [0xe0, 0x80..=0x9f] | [0xf0, 0x80..=0x8f]
        )
    })
}
