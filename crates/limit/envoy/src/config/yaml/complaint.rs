//! What would go's `yaml.v2` say about a text that is no YAML?
//!
//! Both parsers descend from libyaml, so most of what ours says can be said in the words of the
//! other, and nearly always about the same line. Where ours knows a mistake that the other finds
//! under another name, the usual one is taken; where it has no name, ours stays.

use std::str::{self, Utf8Error};

use saphyr_parser::ScanError;

use super::Unreadable;

/// The bytes as a text, if they are one that YAML allows.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Unreadable> {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let said = what_is_no_text(bytes, error).to_owned();
            let line = Some(line_at(bytes, error.valid_up_to()));
            return Err(Unreadable::Complaint { said, line });
        }
    };
    let control = text
        .char_indices()
        .find(|(_, character)| is_control(*character));
    if let Some((at, _)) = control {
        let said = "control characters are not allowed".to_owned();
        let line = Some(line_at(bytes, at));
        return Err(Unreadable::Complaint { said, line });
    }
    Ok(text)
}

/// As libyaml names what is no UTF-8.
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

/// Whether YAML has no place for it.
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

/// Which half of libyaml finds a mistake; they count lines differently.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Half {
    /// Counts them right, but does not name the first one.
    Scanner,
    /// Counts from 0, and does not name the 0.
    Parser,
}

/// What is said about an error of our parser, and where it is.
pub(super) fn of(error: &ScanError, text: &str) -> Unreadable {
    let marker = error.marker();
    let mut line = marker.line();
    let info = error.info();
    if info == "recursion limit exceeded" {
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        return Unreadable::TooDeep { line };
    }
    let (half, said) = match info {
        "while parsing node, found unknown anchor" => {
            let name = anchor_at(text, marker.index());
            let said = format!("unknown anchor '{name}' referenced");
            let line = u32::try_from(line).ok();
            return Unreadable::Complaint { said, line };
        }
        "simple key expected" | "simple key expect ':'" => {
            (Half::Scanner, "could not find expected ':'")
        }
        "while scanning a quoted scalar, found unexpected end of stream"
        | "invalid indentation in quoted scalar" => {
            // Said where the text ends: quotes that were forgotten are missed there.
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
            let said = "block sequence entries are not allowed in this context";
            (Half::Scanner, said)
        }
        _ if info.starts_with("unexpected character") || info.starts_with("tabs disallowed") => {
            (Half::Scanner, "found character that cannot start any token")
        }
        _ => {
            let said = info.rsplit_once(", ").map_or(info, |(_, said)| said);
            // Whoever waits for one of several signs says them with a comma between.
            let said = match info.find("did not find") {
                Some(at) => &info[at..],
                None => said,
            };
            (half_of(info), said)
        }
    };
    let named = match half {
        Half::Scanner => line,
        Half::Parser => line - 1,
    };
    let is_named = named > usize::from(half == Half::Scanner);
    let said = if is_named {
        format!("line {named}: {said}")
    } else {
        said.to_owned()
    };
    let line = u32::try_from(line).ok();
    Unreadable::Complaint { said, line }
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

/// The name of the alias at this character.
pub(super) fn anchor_at(text: &str, index: usize) -> String {
    let rest = text.chars().skip(index).skip_while(|first| *first == '*');
    let is_name = |character: &char| !character.is_whitespace() && !",[]{}".contains(*character);
    rest.take_while(is_name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::build::parse_bytes;
    use super::*;

    fn check(bytes: &[u8], said: &str, line: u32) {
        let expected = Unreadable::Complaint {
            said: said.to_owned(),
            line: Some(line),
        };
        assert_eq!(
            parse_bytes(bytes).unwrap_err(),
            expected,
            "{}",
            bytes.escape_ascii()
        );
    }

    /// What the reference service says to the same texts, and where we see the mistake.
    #[test]
    fn what_is_no_yaml_is_told_in_the_words_of_yaml_v2() {
        let values = "mapping values are not allowed in this context";
        for (text, said, line) in [
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
            check(text.as_bytes(), said, line);
        }
    }

    #[test]
    fn what_is_no_text_is_told_in_the_words_of_yaml_v2() {
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
