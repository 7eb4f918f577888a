//! What of a line of Rust is code, and what is comment?
//!
//! Knows strings, raw strings, character literals and nested comments, and no more: enough to
//! look for a word in code without finding it in prose. Accepts any text and never fails.

/// A line taken apart.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Parts {
    /// Without comments; of strings only the quotes are left.
    pub(super) code: String,
    /// What stands in comments, with their slashes.
    pub(super) comment: String,
}

/// Where the reader is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Code,
    LineComment,
    /// Comments inside comments are counted.
    BlockComment(usize),
    Text,
    /// Ends with a quote and this many `#`.
    RawText(usize),
}

/// Takes the lines of a Rust file apart; one entry for each line.
pub(super) fn split(source: &str) -> Vec<Parts> {
    let characters: Vec<char> = source.chars().collect();
    let mut splitter = Splitter {
        rest: &characters,
        last: ' ',
        place: Place::Code,
        lines: Vec::new(),
        line: Parts::default(),
    };
    while let Some(&character) = splitter.rest.first() {
        splitter.step(character);
    }
    splitter.lines.push(splitter.line);
    splitter.lines
}

struct Splitter<'a> {
    /// What has not been read yet.
    rest: &'a [char],
    /// The character of code before that; tells `r"` from the end of `for"`.
    last: char,
    place: Place,
    lines: Vec<Parts>,
    line: Parts,
}

impl Splitter<'_> {
    fn step(&mut self, character: char) {
        if character == '\n' {
            self.skip(1);
            self.last = ' ';
            if self.place == Place::LineComment {
                self.place = Place::Code;
            }
            self.lines.push(std::mem::take(&mut self.line));
            return;
        }
        match self.place {
            Place::Code => self.code(character),
            Place::LineComment => self.comment(1),
            Place::BlockComment(depth) => self.block_comment(depth),
            Place::Text => self.text(character),
            Place::RawText(hashes) => self.raw_text(hashes),
        }
    }

    fn code(&mut self, character: char) {
        let is_after_word = self.last.is_alphanumeric() || self.last == '_';
        if self.sees("//") {
            self.place = Place::LineComment;
        } else if self.sees("/*") {
            self.place = Place::BlockComment(1);
            self.comment(2);
        } else if character == '"' {
            self.place = Place::Text;
            self.keep(1);
        } else if let Some((prefix, hashes)) = self.raw_text_starts().filter(|_| !is_after_word) {
            self.skip(prefix + hashes + 1);
            self.line.code.push('"');
            self.place = Place::RawText(hashes);
        } else if character == '\'' {
            self.quote();
        } else {
            self.keep(1);
        }
    }

    /// At `r"`, `br#"` and so on: how many letters there are, and how many `#`.
    fn raw_text_starts(&self) -> Option<(usize, usize)> {
        let (prefix, after) = match self.rest {
            ['b' | 'c', 'r', after @ ..] => (2, after),
            ['r', after @ ..] => (1, after),
            _ => return None,
        };
        let hashes = after.iter().take_while(|&&next| next == '#').count();
        (after.get(hashes) == Some(&'"')).then_some((prefix, hashes))
    }

    /// A character literal, or the start of a lifetime.
    fn quote(&mut self) {
        let length = match self.rest {
            ['\'', '\\', escaped @ ..] => {
                // The escaped character may itself be a quote: start looking behind it.
                let end = escaped.iter().skip(1).position(|&next| next == '\'');
                end.map_or(2, |end| end + 4)
            }
            ['\'', _, '\'', ..] => 3,
            _ => {
                self.keep(1);
                return;
            }
        };
        self.skip(length);
        self.line.code.push_str("''");
        self.last = '\'';
    }

    fn block_comment(&mut self, depth: usize) {
        if self.sees("/*") {
            self.place = Place::BlockComment(depth + 1);
            self.comment(2);
        } else if self.sees("*/") {
            self.comment(2);
            self.place = match depth {
                1 => Place::Code,
                _ => Place::BlockComment(depth - 1),
            };
        } else {
            self.comment(1);
        }
    }

    fn text(&mut self, character: char) {
        match character {
            // An escaped line end still ends the line.
            '\\' if self.rest.get(1) != Some(&'\n') => self.skip(2),
            '"' => {
                self.place = Place::Code;
                self.keep(1);
            }
            _ => self.skip(1),
        }
    }

    fn raw_text(&mut self, hashes: usize) {
        let end = format!("\"{}", "#".repeat(hashes));
        if self.sees(&end) {
            self.skip(hashes + 1);
            self.line.code.push('"');
            self.last = '"';
            self.place = Place::Code;
        } else {
            self.skip(1);
        }
    }

    fn sees(&self, word: &str) -> bool {
        let mut rest = self.rest.iter();
        word.chars().all(|expected| rest.next() == Some(&expected))
    }

    fn keep(&mut self, count: usize) {
        for &character in self.rest.iter().take(count) {
            self.line.code.push(character);
            self.last = character;
        }
        self.skip(count);
    }

    fn comment(&mut self, count: usize) {
        self.line.comment.extend(self.rest.iter().take(count));
        self.skip(count);
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[(&str, &str)]) {
        let found = split(source);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|parts| (parts.code.as_str(), parts.comment.as_str()))
            .collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn comments_are_told_from_code() {
        check("a(); // b\nc", &[("a(); ", "// b"), ("c", "")]);
        check("a /* b /* c */ d */ e", &[("a  e", "/* b /* c */ d */")]);
        check("/* a\nb */ c", &[("", "/* a"), (" c", "b */")]);
    }

    #[test]
    fn what_is_in_strings_is_neither_code_nor_comment() {
        check(r#"a("b // c \" d") e"#, &[(r#"a("") e"#, "")]);
        check("a(\"b\\\nc\");", &[("a(\"", ""), ("\");", "")]);
        check("r#\"a \" b\"# c", &[("\"\" c", "")]);
        check("br\"\\\" c", &[("\"\" c", "")]);
        check("cr##\"\"#\"## // d", &[("\"\" ", "// d")]);
        check("for\"a\"", &[("for\"\"", "")]);
    }

    #[test]
    fn quotes_of_characters_and_lifetimes_open_no_string() {
        check(r#"a('"') // b"#, &[("a('') ", "// b")]);
        check(
            r"a('\'', '\\', '\u{1b}') // b",
            &[("a('', '', '') ", "// b")],
        );
        check(
            "fn a<'b>(c: &'b str) // d",
            &[("fn a<'b>(c: &'b str) ", "// d")],
        );
        check("r#type // a", &[("r#type ", "// a")]);
    }

    #[test]
    fn text_that_ends_in_the_middle_is_read_to_its_end() {
        for source in [
            "\"a",
            "r##\"a\"#",
            "/* /* */",
            "'\\",
            "'",
            "b'",
            "\\",
            "\"\\",
        ] {
            assert_eq!(split(source).len(), 1, "{source}");
        }
        assert_eq!(split("a\n\"b\n").len(), 3);
    }
}
