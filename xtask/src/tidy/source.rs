//! What is a file to the rules? Its path and its lines, and for Rust what of each line is code,
//! what is comment, and whether it belongs to a test.

use super::lexer;

/// A text file of the workspace.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    /// Path from the root of the workspace, with `/`.
    pub(super) path: String,
    /// Its lines, without line ends.
    pub(super) lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: usize,
    /// As it stands there.
    pub(super) raw: String,
    /// Rust only: without comments, and strings without what is in them.
    pub(super) code: String,
    /// Rust: what is in comments. Other files: the whole line.
    pub(super) comment: String,
    /// Rust only: stands in a test file or below `#[cfg(test)]`.
    pub(super) is_test: bool,
}

impl SourceFile {
    /// Takes a file apart.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let mut lines: Vec<Line> = text
            .split('\n')
            .enumerate()
            .map(|(index, raw)| Line {
                number: index + 1,
                raw: raw.to_owned(),
                comment: raw.to_owned(),
                ..Line::default()
            })
            .collect();
        // A file ends with a line end; what follows it is no line.
        if lines.last().is_some_and(|line| line.raw.is_empty()) {
            lines.pop();
        }
        let mut file = Self {
            path: path.to_owned(),
            lines,
        };
        if file.is_rust() {
            for (line, parts) in file.lines.iter_mut().zip(lexer::split(text)) {
                line.code = parts.code;
                line.comment = parts.comment;
            }
            file.mark_tests();
        }
        file
    }

    /// Whether this is Rust source of ours; not a sample that a test reads.
    pub(super) fn is_rust(&self) -> bool {
        self.has_extension(&["rs"]) && !self.is_sample()
    }

    /// Whether this is input or expected output of a test: it may look like anything.
    pub(super) fn is_sample(&self) -> bool {
        self.has_folder("testdata")
    }

    /// Whether the file name ends in a dot and one of `extensions`.
    pub(super) fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = self.path.rsplit_once('.').map(|(_, extension)| extension);
        extension.is_some_and(|extension| extensions.contains(&extension))
    }

    /// Whether everything in the file is a test, a benchmark or a fuzz target.
    pub(super) fn is_test_file(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || ["tests", "benches", "fuzz"]
                .iter()
                .any(|folder| self.has_folder(folder))
    }

    fn has_folder(&self, name: &str) -> bool {
        let mut parts = self.path.split('/').rev().skip(1);
        parts.any(|part| part == name)
    }

    /// Finds the items below `#[cfg(test)]` by counting brackets.
    fn mark_tests(&mut self) {
        let is_test_file = self.is_test_file();
        let mut brackets = Brackets::default();
        for line in &mut self.lines {
            line.is_test = is_test_file || brackets.read_line(&line.code);
        }
    }
}

/// How deep in brackets we are, and from which depth on everything is a test.
#[derive(Debug, Default)]
struct Brackets {
    depth: usize,
    /// Depth of a `#[cfg(test)]` whose item has not begun yet.
    announced: Option<usize>,
    /// Depth at which the body of the item stands.
    body: Option<usize>,
}

impl Brackets {
    /// Reads on and says whether any part of this line belongs to a test.
    fn read_line(&mut self, code: &str) -> bool {
        let dense: String = code.split_whitespace().collect();
        let announces = dense.contains("#[cfg(test)]") || dense.contains("#[cfg(all(test,");
        if announces && self.body.is_none() {
            self.announced = Some(self.depth);
        }
        let is_test_before = self.is_test();
        for character in code.chars() {
            match character {
                '{' | '(' | '[' => self.open(character),
                '}' | ')' | ']' => self.close(),
                // `mod tests;` and `use ...;` have no body.
                ';' if self.announced == Some(self.depth) => self.announced = None,
                _ => {}
            }
        }
        is_test_before || self.is_test()
    }

    const fn is_test(&self) -> bool {
        self.announced.is_some() || self.body.is_some()
    }

    fn open(&mut self, bracket: char) {
        if bracket == '{' && self.announced == Some(self.depth) {
            self.announced = None;
            self.body = Some(self.depth);
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.body == Some(self.depth) {
            self.body = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, test_lines: &[usize]) {
        let file = SourceFile::new("crates/a/src/lib.rs", text);
        let found: Vec<usize> = file
            .lines
            .iter()
            .filter(|line| line.is_test)
            .map(|line| line.number)
            .collect();
        assert_eq!(found, test_lines, "{text}");
    }

    #[test]
    fn the_module_below_cfg_test_is_test_code_alone() {
        check(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { if x { y() } }\n}\nfn c() {}\n",
            &[2, 3, 4, 5],
        );
    }

    #[test]
    fn a_test_item_without_a_body_ends_at_its_semicolon() {
        check("#[cfg(test)]\nmod tests;\nfn a() {}\n", &[1, 2]);
        check("#[cfg(test)] use a::{b, c};\nfn a() {}\n", &[1]);
    }

    #[test]
    fn a_semicolon_in_a_type_does_not_end_the_item() {
        check(
            "#[cfg(all(test, unix))]\nfn a(b: [u8; 4]) {\n    c();\n}\nfn d() {}",
            &[1, 2, 3, 4],
        );
    }

    #[test]
    fn test_files_are_known_by_their_path() {
        let is_test = |path: &str| SourceFile::new(path, "//! a").is_test_file();
        assert!(is_test("crates/a/tests/all.rs"));
        assert!(is_test("crates/a/src/room/tests.rs"));
        assert!(is_test("fuzz/targets/ticket.rs"));
        assert!(!is_test("crates/a/src/tests_of_time.rs"));
    }

    #[test]
    fn a_line_end_at_the_end_makes_no_line() {
        assert_eq!(SourceFile::new("a.md", "one\ntwo\n").lines.len(), 2);
        assert_eq!(SourceFile::new("a.md", "one\ntwo").lines.len(), 2);
        assert_eq!(SourceFile::new("a.md", "").lines.len(), 0);
    }
}
