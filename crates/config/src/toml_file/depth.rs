//! Check of the nesting depth of a file.
//!
//! The TOML parser bounds nested brackets, but not the segments of a dotted key. A key of a
//! hundred thousand segments would become as many nested tables, and dropping those would exhaust
//! the stack. Our own keys have three segments.

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// Most segments of one dotted key. With the parser's own bound of 80 brackets the deepest file
/// has some 1,300 nested tables; the smallest usual stack has room for ten times as many.
const SEGMENTS_MAX: usize = 16;

/// Returns the offset of the first dotted key with too many segments.
pub(super) fn find_too_deep(text: &str) -> Option<usize> {
    let mut dots = 0;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => dots += 1,
            // The tokens of a dotted key; a float has one dot and then ends.
            TokenKind::Atom
            | TokenKind::Whitespace
            | TokenKind::LiteralString
            | TokenKind::BasicString => {}
            _ => dots = 0,
        }
        if dots >= SEGMENTS_MAX {
            return Some(token.span().start());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absurd_keys_are_too_deep() {
        assert_eq!(find_too_deep("[server.timeouts]\nx = 1.5"), None);
        assert_eq!(
            find_too_deep("x = 'a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a'"),
            None
        );
        assert_eq!(
            find_too_deep("# ...................................."),
            None
        );
        assert_eq!(find_too_deep(&"1.5,".repeat(100)), None);
        assert!(find_too_deep(&format!("{}a = 1", "a.".repeat(100_000))).is_some());
        assert!(
            find_too_deep(&format!("x = {{ {}a = 1 }}", "\"a=\" . 'b' .".repeat(20))).is_some()
        );
    }
}
