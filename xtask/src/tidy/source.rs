//! Text file of the workspace, as rules read it: its path and its lines.

/// Text file of the workspace.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    /// Path from the root of the workspace, with `/`.
    pub(super) path: String,
    /// Lines without line ends.
    pub(super) lines: Vec<Line>,
}

/// Line of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// Number of the line, counted from 1.
    pub(super) number: usize,
    /// The text of the line.
    pub(super) text: String,
    /// Whether it is in a test file, or in the tests at the end of a file.
    pub(super) is_test: bool,
}

impl SourceFile {
    /// Splits a text into lines.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let mut file = Self {
            path: path.to_owned(),
            lines: Vec::new(),
        };
        let lines: Vec<&str> = text.lines().collect();
        let mut is_test = file.is_test_file();
        for (index, &text) in lines.iter().enumerate() {
            is_test |= file.is_rust() && begins_tests(&lines[index..]);
            file.lines.push(Line {
                number: index + 1,
                text: text.to_owned(),
                is_test,
            });
        }
        file
    }

    /// Returns whether this is Rust source, and not a sample that a test reads.
    pub(super) fn is_rust(&self) -> bool {
        self.has_extension(&["rs"]) && !self.is_sample()
    }

    /// Returns whether this is input or expected output of a test, to which no rule applies.
    pub(super) fn is_sample(&self) -> bool {
        self.has_folder("testdata")
    }

    /// Returns whether the file name ends in a dot and one of `extensions`.
    pub(super) fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = self.path.rsplit_once('.').map(|(_, extension)| extension);
        extension.is_some_and(|extension| extensions.contains(&extension))
    }

    /// Returns whether everything in the file is a test, a benchmark or a fuzz target.
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
}

/// Returns whether the tests at the end of a Rust file begin here: an attribute for tests, and
/// after it and other attributes an item with a body. `mod tests;` and `mod samples;` have none.
fn begins_tests(lines: &[&str]) -> bool {
    let is_for_tests = lines
        .first()
        .is_some_and(|line| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test"));
    let mut items = lines.iter().skip_while(|line| line.starts_with("#["));
    is_for_tests && items.next().is_some_and(|item| item.ends_with('{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_begin_at_the_end_of_a_file() {
        let text = "fn a() {}\n#[cfg(test)]\nmod samples;\n#[cfg(test)]\nmod tests {\n}\n";
        let file = SourceFile::new("crates/a/src/lib.rs", text);
        let is_test: Vec<bool> = file.lines.iter().map(|line| line.is_test).collect();
        assert_eq!(is_test, [false, false, false, true, true, true]);
        let text = "fn a() {}\n#[cfg(all(test, unix))]\n#[expect(b)]\nmod tests {\n}\n";
        let file = SourceFile::new("crates/a/src/lib.rs", text);
        assert!(file.lines.iter().skip(1).all(|line| line.is_test));
    }

    #[test]
    fn test_files_are_known_by_their_path() {
        let is_test = |path: &str| SourceFile::new(path, "//! a").is_test_file();
        assert!(is_test("crates/a/tests/all.rs"));
        assert!(is_test("crates/a/src/room/tests.rs"));
        assert!(is_test("fuzz/targets/ticket.rs"));
        assert!(!is_test("crates/a/src/tests_of_time.rs"));
    }
}
