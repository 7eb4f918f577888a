//! Is a file too long? By a hard limit and a ratchet.

use std::collections::BTreeMap;

use super::RATCHET;
use super::problem::Problem;
use super::source::SourceFile;

/// Lines of a file that nobody goes past. Twice what can still be held in mind at once; a file
/// that needs more holds two ideas.
const FILE_LINES_MAX: usize = 800;

/// Lines from which on a file is discussed and stands in the ratchet file. Above the house's usual
/// 80-400, so that tests at its bottom do not trip it.
const FILE_LINES_DISCUSSED: usize = 500;

/// What is written by hand line by line. Prose and data may be as long as they need.
const WRITTEN: &[&str] = &["rs", "js", "css", "html", "proto", "sh"];

fn is_written(file: &SourceFile) -> bool {
    file.has_extension(WRITTEN) && !file.is_sample()
}

/// No file is longer than [`FILE_LINES_MAX`].
pub(super) fn file_is_too_long(file: &SourceFile) -> Vec<Problem> {
    let lines = file.lines.len();
    if !is_written(file) || lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    let what = format!("{lines} lines, {FILE_LINES_MAX} are the most");
    let remedy = "split it by question, and move long tests to `<name>/tests.rs`";
    vec![Problem::new(&file.path, lines, what, remedy)]
}

/// Long files stand in the ratchet file with exactly their length.
pub(super) fn ratchet_is_off(ratchet: &SourceFile, files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut listed = BTreeMap::new();
    for line in &ratchet.lines {
        match entry(&line.raw) {
            Entry::Remark => {}
            Entry::File { path, lines } => {
                listed.insert(path, (line.number, lines));
            }
            Entry::Unreadable => problems.push(Problem::new(
                RATCHET,
                line.number,
                "not a path and a number",
                "write `path lines`, or start the line with #",
            )),
        }
    }
    let sizes = long_files(files);
    for (&path, &lines) in &sizes {
        match listed.get(path) {
            None => problems.push(Problem::new(
                path,
                lines,
                format!("{lines} lines, more than {FILE_LINES_DISCUSSED}"),
                format!("split it, or discuss it and add `{path} {lines}` to {RATCHET}"),
            )),
            Some(&(_, allowed)) if lines > allowed => problems.push(Problem::new(
                path,
                lines,
                format!("grown from {allowed} to {lines} lines; long files only shrink"),
                "move the new part to a file of its own",
            )),
            Some(_) => {}
        }
    }
    for (path, (number, allowed)) in listed {
        let lines = sizes.get(path).copied().unwrap_or(0);
        if lines < allowed {
            problems.push(Problem::new(
                RATCHET,
                number,
                format!("{path} has become shorter than {allowed} lines"),
                "keep the gain: cargo xtask tidy --update",
            ));
        }
    }
    problems
}

/// The ratchet file with every number lowered to what is there; files that are short again or
/// gone are dropped. Remarks stay.
pub(super) fn lowered_ratchet(old: &str, files: &[SourceFile]) -> String {
    let sizes = long_files(files);
    let mut new = String::new();
    for line in old.lines() {
        let kept = match entry(line) {
            Entry::File { path, lines } => sizes
                .get(path)
                .map(|&actual| format!("{path} {}", actual.min(lines))),
            Entry::Remark | Entry::Unreadable => Some(line.to_owned()),
        };
        if let Some(kept) = kept {
            new.push_str(&kept);
            new.push('\n');
        }
    }
    new
}

enum Entry<'a> {
    Remark,
    File { path: &'a str, lines: usize },
    Unreadable,
}

fn entry(line: &str) -> Entry<'_> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Entry::Remark;
    }
    let parts = line.rsplit_once(' ');
    let parts = parts.and_then(|(path, lines)| Some((path.trim(), lines.parse().ok()?)));
    parts.map_or(Entry::Unreadable, |(path, lines)| Entry::File {
        path,
        lines,
    })
}

fn long_files(files: &[SourceFile]) -> BTreeMap<&str, usize> {
    files
        .iter()
        .filter(|file| is_written(file) && file.lines.len() > FILE_LINES_DISCUSSED)
        .map(|file| (file.path.as_str(), file.lines.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> SourceFile {
        SourceFile::new(path, &"//! a\n".repeat(lines))
    }

    fn check_ratchet(ratchet: &str, lines: usize, expected: &[&str]) {
        let ratchet = SourceFile::new(RATCHET, ratchet);
        let problems = ratchet_is_off(&ratchet, &[file("a.rs", lines)]);
        let found: Vec<&str> = problems
            .iter()
            .map(|problem| problem.what.as_str())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn eight_hundred_lines_are_the_most() {
        assert!(file_is_too_long(&file("a.rs", 800)).is_empty());
        assert_eq!(file_is_too_long(&file("a.rs", 801)).len(), 1);
        assert_eq!(file_is_too_long(&file("page.html", 801)).len(), 1);
        assert!(file_is_too_long(&file("README.md", 801)).is_empty());
        assert!(file_is_too_long(&file("testdata/a.html", 801)).is_empty());
    }

    #[test]
    fn a_long_file_must_be_listed() {
        check_ratchet("", 500, &[]);
        check_ratchet("", 501, &["501 lines, more than 500"]);
        check_ratchet("a.rs 501", 501, &[]);
    }

    #[test]
    fn a_listed_file_may_not_grow_and_what_it_lost_is_kept() {
        check_ratchet(
            "a.rs 510",
            511,
            &["grown from 510 to 511 lines; long files only shrink"],
        );
        check_ratchet("a.rs 510", 505, &["a.rs has become shorter than 510 lines"]);
        check_ratchet("a.rs 510", 12, &["a.rs has become shorter than 510 lines"]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        check_ratchet("# remark\n\na.rs many\n", 1, &["not a path and a number"]);
        check_ratchet("a.rs\n", 1, &["not a path and a number"]);
    }

    #[test]
    fn an_update_lowers_and_drops_but_never_raises_or_adds() {
        let files = [
            file("a.rs", 550),
            file("b.rs", 550),
            file("c.rs", 550),
            file("d.rs", 1),
        ];
        let old = "# remark\na.rs 600\nb.rs 520\nd.rs 510\ngone.rs 510\n";
        assert_eq!(
            lowered_ratchet(old, &files),
            "# remark\na.rs 550\nb.rs 520\n"
        );
    }
}
