//! Normal form of the path that a room covers.
//!
//! Only for paths that an operator types. The gateway handles the paths of requests.

/// Error of a text that is not the path of a room.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path does not begin with `/`.
    #[error("path does not begin with /")]
    Relative,
    /// The path contains `*`.
    #[error("path has a wildcard")]
    Wildcard,
    /// The path contains `?` or `#`.
    #[error("path has a query or a fragment")]
    Query,
    /// The path contains a space, a control character or a backslash.
    #[error("path has a space, a control character or a backslash")]
    Character,
    /// A percent sign is not followed by two hex digits.
    #[error("path has a broken percent escape")]
    Escape,
    /// The path escapes `/`, `\` or a control character; origins do not agree on what that means.
    #[error("path escapes a slash, a backslash or a control character")]
    Ambiguous,
}

/// Brings the path of a room into its one form: unreserved characters bare, escapes in
/// upper case, no empty and no dot segments, no trailing slash except for `/` itself.
///
/// Normalising a result again changes nothing.
///
/// # Errors
///
/// [`PathError`] if the text is not a path, or does not mean the same to every origin.
pub fn normalise(text: &str) -> Result<String, PathError> {
    if !text.starts_with('/') {
        return Err(PathError::Relative);
    }
    let escaped = normalise_escapes(text)?;
    let mut segments: Vec<&str> = Vec::new();
    for segment in escaped.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    Ok(format!("/{}", segments.join("/")))
}

/// Whether a path that can be normalised has a `.` or `..` segment: then it is not what it seems.
#[must_use]
pub fn has_dot_segments(text: &str) -> bool {
    let escaped = normalise_escapes(text).unwrap_or_default();
    escaped
        .split('/')
        .any(|segment| matches!(segment, "." | ".."))
}

/// Brings every character into its one spelling; an escaped reserved character differs from the
/// bare one.
fn normalise_escapes(text: &str) -> Result<String, PathError> {
    let mut out = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' => return Err(PathError::Wildcard),
            b'?' | b'#' => return Err(PathError::Query),
            0..=b' ' | b'\\' | 0x7f => return Err(PathError::Character),
            b'%' => {
                let high = bytes.next().and_then(hex).ok_or(PathError::Escape)?;
                let low = bytes.next().and_then(hex).ok_or(PathError::Escape)?;
                match high << 4 | low {
                    b'/' | b'\\' | 0..0x20 | 0x7f => return Err(PathError::Ambiguous),
                    unreserved if is_unreserved(unreserved) => out.push(char::from(unreserved)),
                    other => push_escaped(other, &mut out),
                }
            }
            // RFC 3986 `pchar`, and the slash between segments.
            bare if is_unreserved(bare) || b"/!$&'()+,;=:@".contains(&bare) => {
                out.push(char::from(bare));
            }
            other => push_escaped(other, &mut out),
        }
    }
    Ok(out)
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn push_escaped(byte: u8, out: &mut String) {
    out.push('%');
    out.push(digit(byte >> 4));
    out.push(digit(byte & 0xf));
}

const fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

const fn digit(nibble: u8) -> char {
    (if nibble < 10 {
        b'0' + nibble
    } else {
        b'A' + nibble - 10
    }) as char
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_prefix_has_one_form_and_keeps_it() {
        let check = |input: &str, expected: &str| {
            assert_eq!(normalise(input).as_deref(), Ok(expected), "{input}");
            assert_eq!(
                normalise(expected).as_deref(),
                Ok(expected),
                "{input} again"
            );
        };
        check("/", "/");
        check("//", "/");
        check("/shop/", "/shop");
        check("//shop///a/", "/shop/a");
        check("/./shop/../shop/.", "/shop");
        check("/../..", "/");
        check("/%73hop", "/shop");
        check("/%2e%2E/shop", "/shop");
        check("/caf%c3%a9", "/caf%C3%A9");
        check("/café", "/caf%C3%A9");
        check("/Shop", "/Shop");
        check("/a%20b", "/a%20b");
        check("/a;x=1", "/a;x=1");
        check("/%2525", "/%2525");
        check("/a%3ab", "/a%3Ab");
        check("/a:b", "/a:b");
        check("/a%2ab", "/a%2Ab");
        check("/\"a\"", "/%22a%22");
    }

    #[test]
    fn a_dot_segment_is_seen_bare_and_escaped() {
        for path in ["/a/../b", "/.", "/a/%2e%2E", "/a/."] {
            assert!(has_dot_segments(path), "{path}");
        }
        for path in ["/", "/a.b/..c", "/...", "relative/x*"] {
            assert!(!has_dot_segments(path), "{path}");
        }
    }

    #[test]
    fn an_invalid_path_is_rejected_with_its_reason() {
        let check = |input: &str, expected| {
            assert_eq!(normalise(input), Err(expected), "{input}");
        };
        check("", PathError::Relative);
        check("shop", PathError::Relative);
        check("/shop*", PathError::Wildcard);
        check("/shop?a=b", PathError::Query);
        check("/shop#a", PathError::Query);
        check("/a b", PathError::Character);
        check("/a\\b", PathError::Character);
        check("/a\nb", PathError::Character);
        check("/%", PathError::Escape);
        check("/%4", PathError::Escape);
        check("/%zz", PathError::Escape);
        check("/a%2fb", PathError::Ambiguous);
        check("/a%5Cb", PathError::Ambiguous);
        check("/a%00", PathError::Ambiguous);
    }
}
