//! Is the file nested within reason?
//!
//! The TOML parser bounds brackets inside brackets, not the segments of a dotted key; a key of a
//! hundred thousand segments would become as many tables inside each other, and taking those
//! apart again would exhaust the stack. Our own keys have three segments.

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// Most segments of one dotted key. With the parser's own bound of 80 brackets the deepest file
/// is some 1 300 tables deep, which the smallest usual stack carries ten times over.
const SEGMENTS_MAX: usize = 16;

/// The offset of the first dotted key with too many segments.
pub(super) fn find_too_deep(text: &str) -> Option<usize> {
    let mut dots = 0;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => dots += 1,
            // What a dotted key is made of; a float has one dot and then ends.
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
