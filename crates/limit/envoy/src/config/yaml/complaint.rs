//! Messages of go's `yaml.v2` for texts that are no YAML.
//!
//! Both parsers descend from libyaml, so most errors of ours have a counterpart there, nearly
//! always on the same line. Where the other parser has several messages for an error, the usual one
//! is used; where it has none, ours stays.

use std::str::{self, Utf8Error};

use saphyr_parser::ScanError;

use super::Unreadable;

/// Checks that the bytes are text that YAML allows.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Unreadable> {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let message = what_is_no_text(bytes, error).to_owned();
            let line = Some(line_at(bytes, error.valid_up_to()));
            return Err(Unreadable::Complaint { message, line });
        }
    };
    let control = text
        .char_indices()
        .find(|(_, character)| is_control(*character));
    if let Some((at, _)) = control {
        let message = "control characters are not allowed".to_owned();
        let line = Some(line_at(bytes, at));
        return Err(Unreadable::Complaint { message, line });
    }
    Ok(text)
}

/// Returns libyaml's message for invalid UTF-8.
fn what_is_no_text(bytes: &[u8], error: Utf8Error) -> &'static str {
    let rest = &bytes[error.valid_up_to()..];
    match (rest, error.error_len()) {
        (_, None) => "incomplete UTF-8 octet sequence",
        ([0x80..=0xbf | 0xf8..=0xff, ..], _) => "invalid leading UTF-8 octet",
        ([0xed, 0xa0..=0xbf, 0x80..=0xbf, ..], _) => "invalid Unicode character",
        ([0xc0 | 0xc1, 0x80..=0xbf, ..], _) => "invalid length of a UTF-8 sequence",
        _ => "invalid trailing UTF-8 octet",
    }
}

/// Whether YAML forbids this character.
const fn is_control(character: char) -> bool {
    !matches!(
        character,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}'
            | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}'
    )
}

fn line_at(bytes: &[u8], at: usize) -> u32 {
    let lines = bytes[..at].iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(lines + 1).unwrap_or(u32::MAX)
}

/// Half of libyaml that finds an error; the two count lines differently.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Half {
    /// Counts lines right, but does not print line 1.
    Scanner,
    /// Counts lines from 0, and does not print line 0.
    Parser,
}

/// Converts an error of our parser.
pub(super) fn of(error: &ScanError, text: &str) -> Unreadable {
    let marker = error.marker();
    let mut line = marker.line();
    let info = error.info();
    if info == "recursion limit exceeded" {
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        return Unreadable::TooDeep { line };
    }
    let (half, message) = match info {
        "while parsing node, found unknown anchor" => {
            let name = anchor_at(text, marker.index());
            let message = format!("unknown anchor '{name}' referenced");
            let line = u32::try_from(line).ok();
            return Unreadable::Complaint { message, line };
        }
        "simple key expected" | "simple key expect ':'" => {
            (Half::Scanner, "could not find expected ':'")
        }
        "while scanning a quoted scalar, found unexpected end of stream"
        | "invalid indentation in quoted scalar" => {
            // Reported at the end of the text: that is where missing quotes are noticed.
            line = text.lines().count() + usize::from(text.ends_with('\n'));
            (Half::Scanner, "found unexpected end of stream")
        }
        "while scanning a plain scalar, found a tab" => {
            line += 1;
            (
                Half::Scanner,
                "found a tab character that violates indentation",
            )
        }
        "misplaced bracket" => (Half::Parser, "did not find expected node content"),
        "comment intercepting the multiline text" => (Half::Scanner, "could not find expected ':'"),
        "while parsing a flow sequence, expected ',' or ']'" => {
            (Half::Parser, "did not find expected ',' or ']'")
        }
        "\"-\" is only valid inside a block" => {
            let message = "block sequence entries are not allowed in this context";
            (Half::Scanner, message)
        }
        _ if info.starts_with("unexpected character") || info.starts_with("tabs disallowed") => {
            (Half::Scanner, "found character that cannot start any token")
        }
        _ => {
            let message = info.rsplit_once(", ").map_or(info, |(_, message)| message);
            // Errors that name several alternatives have commas between them.
            let message = match info.find("did not find") {
                Some(at) => &info[at..],
                None => message,
            };
            (half_of(info), message)
        }
    };
    let named = match half {
        Half::Scanner => line,
        Half::Parser => line - 1,
    };
    let is_named = named > usize::from(half == Half::Scanner);
    let message = if is_named {
        format!("line {named}: {message}")
    } else {
        message.to_owned()
    };
    let line = u32::try_from(line).ok();
    Unreadable::Complaint { message, line }
}

fn half_of(info: &str) -> Half {
    let of_parser = [
        "while parsing a block",
        "while parsing a flow",
        "while parsing a node",
    ];
    if of_parser.iter().any(|begin| info.starts_with(begin)) {
        Half::Parser
    } else {
        Half::Scanner
    }
}

/// Returns the name of the alias at this character.
pub(super) fn anchor_at(text: &str, index: usize) -> String {
    let rest = text.chars().skip(index).skip_while(|first| *first == '*');
    let is_name = |character: &char| !character.is_whitespace() && !",[]{}".contains(*character);
    rest.take_while(is_name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::build::parse_bytes;
    use super::*;

    fn check(bytes: &[u8], message: &str, line: u32) {
        let expected = Unreadable::Complaint {
            message: message.to_owned(),
            line: Some(line),
        };
        assert_eq!(
            parse_bytes(bytes).unwrap_err(),
            expected,
            "{}",
            bytes.escape_ascii()
        );
    }

    /// Messages of the reference service for the same texts, and our lines.
    #[test]
    fn invalid_yaml_has_the_messages_of_yaml_v2() {
        let values = "mapping values are not allowed in this context";
        for (text, message, line) in [
            ("'''\n", "line 2: found unexpected end of stream", 2),
            ("domain: \"a", "found unexpected end of stream", 1),
            ("domain: d: e", values, 1),
            (
                "domain: d\n x: y\n",
                "line 2: mapping values are not allowed in this context",
                2,
            ),
            ("a: b\nc\nd: e", "line 3: could not find expected ':'", 3),
            ("a: b\n- c", "line 1: did not find expected key", 2),
            (
                "- a\nb: c",
                "line 1: did not find expected '-' indicator",
                2,
            ),
            ("a:\n  b: 1\n c: 2", "line 2: did not find expected key", 3),
            (
                "domain: @x",
                "found character that cannot start any token",
                1,
            ),
            (
                "a: b\nc: `x",
                "line 2: found character that cannot start any token",
                2,
            ),
            (
                "domain: *",
                "did not find expected alphabetic or numeric character",
                1,
            ),
            ("a: b\nc: *x", "unknown anchor 'x' referenced", 2),
            (
                "domain: d\n\tx: y",
                "line 2: found a tab character that violates indentation",
                2,
            ),
            (
                "a: b\nc: >x\n",
                "line 2: did not find expected comment or line break",
                2,
            ),
            ("domain: \"\\q\"", "found unknown escape character", 1),
        ] {
            check(text.as_bytes(), message, line);
        }
    }

    #[test]
    fn invalid_text_has_the_messages_of_yaml_v2() {
        check(b"a: \x01", "control characters are not allowed", 1);
        check(b"a: b\nc: \0", "control characters are not allowed", 2);
        check(b"a: b\n\xff", "invalid leading UTF-8 octet", 2);
        check(b"a: \xc3(", "invalid trailing UTF-8 octet", 1);
        check(b"a: \xc0\x80", "invalid length of a UTF-8 sequence", 1);
        check(b"a: \xed\xa0\x80", "invalid Unicode character", 1);
        check(b"a: \xc3", "incomplete UTF-8 octet sequence", 1);
        assert!(parse_bytes("\u{feff}a: b".as_bytes()).is_ok());
    }
}
