//! Is anything in the text that should not be? Marks of unfinished work, stray spaces and tabs,
//! paths that only one machine has.
//!
//! The words looked for are put together from pieces, so that this file does not hold them.

use super::problem::Problem;
use super::source::SourceFile;

/// Text that people edit; spaces at the end of its lines are accidents.
const EDITED: &[&str] = &[
    "rs", "toml", "md", "css", "js", "html", "sh", "proto", "yml", "yaml",
];

/// Text in which unfinished work is marked. Prose is left out: it may speak about such marks.
const MARKED: &[&str] = &["rs", "toml", "css", "js", "html", "sh", "proto"];

/// Unfinished work is an issue, and the mark names it.
pub(super) fn unfinished_work_is_marked(file: &SourceFile) -> Vec<Problem> {
    if !file.has_extension(MARKED) || file.is_sample() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for line in &file.lines {
        for mark in [concat!("FIX", "ME"), concat!("X", "XX")] {
            if words_after(&line.comment, mark).next().is_some() {
                let remedy = "mend it, or open an issue and write TODO(#its number)";
                problems.push(Problem::new(&file.path, line.number, mark, remedy));
            }
        }
        if words_after(&line.comment, "TODO").any(|rest| !names_an_issue(rest)) {
            let what = "TODO without an issue";
            let remedy = "write TODO(#12) with the number of the issue";
            problems.push(Problem::new(&file.path, line.number, what, remedy));
        }
    }
    problems
}

/// What follows each place in `text` where `word` stands as a word of its own.
fn words_after<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).filter_map(move |(at, _)| {
        let rest = text.get(at + word.len()..)?;
        let is_word = !text.get(..at)?.ends_with(is_part) && !rest.starts_with(is_part);
        is_word.then_some(rest)
    })
}

/// Whether `rest` starts with `(#12)`.
fn names_an_issue(rest: &str) -> bool {
    let number = rest
        .strip_prefix("(#")
        .and_then(|rest| rest.split_once(')'));
    number.is_some_and(|(number, _)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// No spaces at the end of a line: they make changes that nobody sees.
pub(super) fn line_ends_in_whitespace(file: &SourceFile) -> Vec<Problem> {
    if !file.has_extension(EDITED) && file.path != ".ci/run" || file.is_sample() {
        return Vec::new();
    }
    let bad = file
        .lines
        .iter()
        .filter(|line| line.raw.ends_with(char::is_whitespace));
    bad.map(|line| {
        Problem::new(
            &file.path,
            line.number,
            "whitespace at the end of the line",
            "delete it",
        )
    })
    .collect()
}

/// No tabs in Rust, not even in strings: there they cannot be told from spaces.
pub(super) fn tab_in_rust(file: &SourceFile) -> Vec<Problem> {
    if !file.is_rust() {
        return Vec::new();
    }
    let bad = file.lines.iter().filter(|line| line.raw.contains('\t'));
    bad.map(|line| {
        let remedy = "indent with spaces; in a string write \\t";
        Problem::new(&file.path, line.number, "a tab", remedy)
    })
    .collect()
}

/// The project speaks of itself alone: a path that only one machine has helps no reader and
/// works for nobody else.
pub(super) fn path_of_one_machine(file: &SourceFile) -> Vec<Problem> {
    let places = [
        concat!("/", "work/"),
        concat!("/", "tmp/"),
        concat!("/", "root/."),
        concat!("../sha", "red"),
    ];
    let mut problems = Vec::new();
    for line in &file.lines {
        for place in places {
            if line.raw.contains(place) {
                let what = format!("`{place}` is a path of one machine");
                let remedy = "say it without the path; in a test use a folder of its own";
                problems.push(Problem::new(&file.path, line.number, what, remedy));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Rule;

    fn check(rule: Rule, path: &str, text: &str, lines: &[usize]) {
        let problems = rule(&SourceFile::new(path, text));
        let found: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, lines, "{text}");
    }

    const CODE: &str = "crates/a/src/lib.rs";

    #[test]
    fn marks_of_unfinished_work_are_found_in_comments() {
        let rule = unfinished_work_is_marked;
        check(rule, CODE, concat!("//! a\n// FIX", "ME: b\n"), &[2]);
        check(rule, CODE, concat!("a(); // X", "XX\n"), &[1]);
        check(rule, "a.toml", concat!("# FIX", "ME\n"), &[1]);
        check(rule, CODE, concat!("let a = \"X", "XX\";\n"), &[]);
        check(rule, CODE, concat!("// aX", "XXb\n"), &[]);
    }

    #[test]
    fn a_todo_needs_the_number_of_an_issue() {
        let rule = unfinished_work_is_marked;
        check(
            rule,
            CODE,
            "// TODO: later\n// TODO(somebody)\n// TODO(#)\n",
            &[1, 2, 3],
        );
        check(rule, CODE, "// TODO(#12): later\n// TODOS\n", &[]);
        check(rule, CODE, "// TODO(#12) and TODO\n", &[1]);
    }

    #[test]
    fn whitespace_at_the_end_of_a_line_is_found() {
        check(
            line_ends_in_whitespace,
            CODE,
            "a \nb\nc\t\nd\r\n",
            &[1, 3, 4],
        );
        check(line_ends_in_whitespace, ".ci/run", "a \n", &[1]);
        check(line_ends_in_whitespace, "LICENSE", "a \n", &[]);
        check(
            line_ends_in_whitespace,
            "crates/a/testdata/b.md",
            "a \n",
            &[],
        );
    }

    #[test]
    fn tabs_are_found_in_rust_only() {
        check(tab_in_rust, CODE, "a\n\tb\n", &[2]);
        check(tab_in_rust, "a.html", "\tb\n", &[]);
    }

    #[test]
    fn paths_of_one_machine_are_found_anywhere() {
        check(
            path_of_one_machine,
            "README.md",
            concat!("see /", "work/a\n"),
            &[1],
        );
        check(
            path_of_one_machine,
            CODE,
            concat!("a\nlet b = \"/", "tmp/c\";\n"),
            &[2],
        );
        check(
            path_of_one_machine,
            CODE,
            concat!("// ../sha", "red/style\n"),
            &[1],
        );
        check(
            path_of_one_machine,
            CODE,
            concat!("// /", "root/.cargo\n"),
            &[1],
        );
        check(
            path_of_one_machine,
            CODE,
            "// a worker's shared root\n",
            &[],
        );
    }
}
