//! Rules that check one file at a time.
//!
//! They check text only; rustfmt, the compiler and clippy check the rest. The searched words are
//! put together from pieces, so that this file does not contain them.

use super::problem::Problem;
use super::source::{Line, SourceFile};
use super::words;

/// Rule that checks one file.
type Rule = fn(&SourceFile) -> Vec<Problem>;

/// All rules.
pub(super) const RULES: &[Rule] = &[
    file_is_too_long,
    line_is_too_long,
    line_ends_in_whitespace,
    file_does_not_state_its_purpose,
    test_is_ignored,
    test_sleeps,
    unfinished_work_is_marked,
    path_of_one_machine,
    words::prose_is_not_plain,
];

/// Most lines of a file without its tests. A file that needs more has two purposes.
const FILE_LINES_MAX: usize = 800;

/// Most characters of a line: two files beside each other on a screen, or a review on a laptop.
const LINE_CHARACTERS_MAX: usize = 100;

/// Files that people edit.
const EDITED: &[&str] = &[
    "rs", "toml", "md", "js", "css", "html", "sh", "yaml", "yml", "lua", "proto",
];

/// Files that hold code.
const CODE: &[&str] = &["rs", "js", "css", "html", "lua", "proto", "sh"];

/// Comment that allows a sleep in a test: time is paused there, so the test does not wait.
const PAUSED_TIME: &str = "tidy: paused time";
/// Comment that allows a sleep in a test whose subject is passing time, as when a visitor reads a
/// page or a process is stopped. The test expects no condition after it.
const TIME_PASSES: &str = "tidy: time passes";

/// Returns findings in the lines for which `is_bad` holds.
fn lines_where(
    file: &SourceFile,
    is_bad: impl Fn(&Line) -> bool,
    what: &str,
    remedy: &str,
) -> Vec<Problem> {
    let bad = file.lines.iter().filter(|line| is_bad(line));
    bad.map(|line| Problem::new(&file.path, line.number, what, remedy))
        .collect()
}

fn is_edited(file: &SourceFile) -> bool {
    (file.has_extension(EDITED) || file.path == ".ci/run") && !file.is_sample()
}

fn file_is_too_long(file: &SourceFile) -> Vec<Problem> {
    let lines = file.lines.iter().filter(|line| !line.is_test).count();
    let is_code = file.has_extension(CODE) && !file.is_sample();
    if !is_code || file.is_test_file() || lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    let what = format!("{lines} lines without tests, {FILE_LINES_MAX} are the most");
    let remedy = "split it by purpose";
    vec![Problem::new(&file.path, lines, what, remedy)]
}

/// Checks the length of lines. Rows of tables in pages, addresses, and items of a
/// summary cannot be broken.
fn line_is_too_long(file: &SourceFile) -> Vec<Problem> {
    if !is_edited(file) {
        return Vec::new();
    }
    let is_bad = |line: &Line| {
        let words = line.text.trim_start_matches(['/', '!', '#', ' ']);
        let is_address = ["://", "type.googleapis.com/"];
        let is_address = is_address.iter().any(|mark| line.text.contains(mark));
        let is_link = words.starts_with("- [") && words.ends_with(')');
        let is_row = words.starts_with('|') && !file.is_rust();
        let may_be_long = is_row || is_address || is_link;
        line.text.chars().count() > LINE_CHARACTERS_MAX && !may_be_long
    };
    let remedy = "break it; a string continues after a backslash at the end of the line";
    lines_where(file, is_bad, "more than 100 characters", remedy)
}

/// Checks that no line ends in whitespace, whose changes are invisible in a review.
fn line_ends_in_whitespace(file: &SourceFile) -> Vec<Problem> {
    if !is_edited(file) {
        return Vec::new();
    }
    let is_bad = |line: &Line| line.text.ends_with(char::is_whitespace);
    lines_where(
        file,
        is_bad,
        "whitespace at the end of the line",
        "delete it",
    )
}

/// Checks that every file starts with its purpose.
fn file_does_not_state_its_purpose(file: &SourceFile) -> Vec<Problem> {
    let first = file.lines.first().map_or("", |line| line.text.as_str());
    if !file.is_rust() || first.starts_with("//!") {
        return Vec::new();
    }
    let remedy = "state its purpose, and what it deliberately does not do";
    vec![Problem::new(
        &file.path,
        1,
        "file does not start with //!",
        remedy,
    )]
}

/// Checks that no test is ignored: it would prove nothing.
fn test_is_ignored(file: &SourceFile) -> Vec<Problem> {
    if !file.is_rust() {
        return Vec::new();
    }
    let is_ignored = |line: &Line| {
        let dense: String = line.text.split_whitespace().collect();
        dense.starts_with(concat!("#[", "ignore"))
            || (dense.starts_with("#[cfg_attr(") && dense.contains(",ignore"))
    };
    let remedy = "make it fast and certain enough to run, or delete it";
    lines_where(file, is_ignored, "an ignored test", remedy)
}

/// Checks that no test sleeps: it would be slow if it passes, and flaky otherwise.
fn test_sleeps(file: &SourceFile) -> Vec<Problem> {
    if !file.is_rust() {
        return Vec::new();
    }
    let sleeps = |line: &Line| {
        let (code, comment) = line.text.split_once("//").unwrap_or((&line.text, ""));
        let markers = [PAUSED_TIME, TIME_PASSES];
        let is_marked = markers.iter().any(|marker| comment.contains(marker));
        let may_pause = is_marked && !code.contains("thread::");
        line.is_test && !may_pause && calls_sleep(code)
    };
    let remedy = "wait for the condition itself; under tokio's paused time say so on the line: \
                  // tidy: paused time; where nothing is awaited but time: // tidy: time passes";
    lines_where(file, sleeps, "a test sleeps", remedy)
}

/// Returns whether code calls `sleep(...)` or `time::sleep(...)`. A method (a test clock may have
/// one) and the definition of such a function do not count.
fn calls_sleep(code: &str) -> bool {
    ["sleep(", "sleep_until(", "sleep_ms("].iter().any(|call| {
        code.match_indices(call).any(|(at, _)| {
            let before = code.get(..at).unwrap_or_default();
            !before.ends_with(['.', '_', '"'])
                && !before.ends_with(char::is_alphanumeric)
                && !before.trim_end().ends_with("fn")
        })
    })
}

/// Checks that no line marks unfinished work: issues are the place for it.
fn unfinished_work_is_marked(file: &SourceFile) -> Vec<Problem> {
    let marks = [
        concat!("FIX", "ME"),
        concat!("X", "XX"),
        concat!("TO", "DO"),
    ];
    let is_marked = |line: &Line| {
        let mut words = line.text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| marks.contains(&word))
    };
    if file.is_sample() {
        return Vec::new();
    }
    lines_where(
        file,
        is_marked,
        "a mark of unfinished work",
        "finish it, or open an issue",
    )
}

/// Checks that no line has a path that only one machine has.
fn path_of_one_machine(file: &SourceFile) -> Vec<Problem> {
    let places = [
        concat!("/", "work/"),
        concat!("/", "tmp/"),
        concat!("/", "root/."),
        concat!("../sha", "red"),
    ];
    let is_bad = |line: &Line| places.iter().any(|place| line.text.contains(place));
    let remedy = "write it without the path; in a test use a temporary folder";
    lines_where(file, is_bad, "a path of one machine", remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "crates/a/src/lib.rs";
    const TEST: &str = "crates/a/tests/all.rs";

    fn check(rule: Rule, path: &str, text: &str, lines: &[usize]) {
        let problems = rule(&SourceFile::new(path, text));
        let found: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, lines, "{text}");
    }

    #[test]
    fn eight_hundred_lines_without_tests_are_the_most() {
        let long = "//! a\n".repeat(800);
        check(file_is_too_long, SOURCE, &long, &[]);
        let tests = format!("{long}#[cfg(test)]\nmod tests {{\n}}\n");
        check(file_is_too_long, SOURCE, &tests, &[]);
        check(file_is_too_long, TEST, &format!("{long}{long}"), &[]);
        let longer = format!("{long}a\n");
        check(file_is_too_long, SOURCE, &longer, &[801]);
        check(file_is_too_long, "page.html", &longer, &[801]);
        check(file_is_too_long, "README.md", &longer, &[]);
        check(file_is_too_long, "testdata/a.html", &longer, &[]);
    }

    #[test]
    fn a_hundred_characters_are_the_most() {
        let line = |first: &str, count: usize| format!("{first}{}", "\u{e9}".repeat(count));
        let rule = line_is_too_long;
        check(rule, SOURCE, &line("", 100), &[]);
        check(rule, SOURCE, &line("", 101), &[1]);
        check(rule, "docs/a.md", &line("", 101), &[1]);
        check(rule, "docs/a.md", &line("| ", 101), &[]);
        check(rule, SOURCE, &line("/// | ", 101), &[1]);
        check(rule, SOURCE, &line("//! https://example.com/", 101), &[]);
        let item = format!("  {})", line("- [", 101));
        check(rule, "docs/a.md", &item, &[]);
        check(rule, "testdata/a.rs", &line("", 101), &[]);
    }

    #[test]
    fn whitespace_at_the_end_of_a_line_is_found() {
        let rule = line_ends_in_whitespace;
        check(rule, SOURCE, "a \nb\nc\t\n", &[1, 3]);
        check(rule, ".ci/run", "a \n", &[1]);
        check(rule, "LICENSE", "a \n", &[]);
        check(rule, "crates/a/testdata/b.md", "a \n", &[]);
    }

    #[test]
    fn a_file_that_does_not_state_its_purpose_is_found() {
        let rule = file_does_not_state_its_purpose;
        check(rule, SOURCE, "use std::fmt;\n//! late\n", &[1]);
        check(rule, SOURCE, "", &[1]);
        check(rule, SOURCE, "//! Answers.\n", &[]);
        check(rule, "README.md", "# Title\n", &[]);
    }

    #[test]
    fn ignored_tests_are_found() {
        let attribute = concat!("#[", "ignore = \"slow\"]\n#[cfg_attr(unix, ignore)]\n");
        check(test_is_ignored, SOURCE, attribute, &[1, 2]);
        check(test_is_ignored, SOURCE, "// they ignore it\n#[test]\n", &[]);
    }

    #[test]
    fn a_test_may_sleep_in_paused_time_only() {
        // Put together from pieces, so that this file does not contain the call.
        let check = |path: &str, before: &str, after: &str, lines: &[usize]| {
            let text = format!("{before}{}{after}\n", concat!("sle", "ep(a)"));
            check(test_sleeps, path, &text, lines);
        };
        check(TEST, "tokio::time::", ".await;", &[1]);
        check(TEST, "thread::", "; // tidy: paused time", &[1]);
        check(TEST, "", ".await; // tidy: paused time", &[]);
        check(TEST, "", ".await; // tidy: time passes", &[]);
        check(TEST, "clock.", ";", &[]);
        check(TEST, "fn ", " {}", &[]);
        check(SOURCE, "", ".await;", &[]);
        check(SOURCE, "#[cfg(test)]\nmod tests {\n", ";", &[3]);
    }

    #[test]
    fn marks_of_unfinished_work_are_found() {
        let rule = unfinished_work_is_marked;
        check(rule, SOURCE, concat!("//! a\n// FIX", "ME: b\n"), &[2]);
        check(rule, "a.toml", concat!("# X", "XX\n# TO", "DO\n"), &[1, 2]);
        check(rule, SOURCE, concat!("// aX", "XXb\n"), &[]);
    }

    #[test]
    fn paths_of_one_machine_are_found_anywhere() {
        let rule = path_of_one_machine;
        check(rule, "README.md", concat!("see /", "work/a\n"), &[1]);
        check(rule, SOURCE, concat!("a\nlet b = \"/", "tmp/c\";\n"), &[2]);
        check(rule, SOURCE, concat!("// ../sha", "red/style\n"), &[1]);
        check(rule, SOURCE, concat!("// /", "root/.cargo\n"), &[1]);
        check(rule, SOURCE, "// a worker's shared root\n", &[]);
    }
}
