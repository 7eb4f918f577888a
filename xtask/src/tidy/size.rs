//! Is anything too long? Files by a hard limit and a ratchet, crates by a limit.

use std::collections::BTreeMap;

use super::RATCHET;
use super::problem::Problem;
use super::source::SourceFile;

/// Lines of a file that nobody goes past. Twice what can still be held in mind at once; a file
/// that needs more holds two ideas.
const FILE_LINES_MAX: usize = 600;

/// Lines from which on a file is discussed and stands in the ratchet file. A third above the
/// house's usual 80-300, so that tests at its bottom do not trip it.
const FILE_LINES_DISCUSSED: usize = 400;

/// Lines of a crate, tests included. More than this nobody reads in a day; split it by question.
const CRATE_LINES_MAX: usize = 10_000;

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

/// No crate is longer than [`CRATE_LINES_MAX`].
pub(super) fn crate_is_too_long(files: &[SourceFile]) -> Vec<Problem> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if let Some(name) = crate_folder(&file.path) {
            *sizes.entry(name).or_default() += file.lines.len();
        }
    }
    let too_long = sizes.iter().filter(|&(_, &lines)| lines > CRATE_LINES_MAX);
    too_long
        .map(|(name, lines)| {
            Problem::new(
                &format!("{name}/Cargo.toml"),
                1,
                format!("{lines} lines in one crate, {CRATE_LINES_MAX} are the most"),
                "make a part that answers a question of its own a crate",
            )
        })
        .collect()
}

/// `crates/a` of `crates/a/src/lib.rs`, `xtask` of `xtask/src/main.rs`; nothing for the root.
fn crate_folder(path: &str) -> Option<&str> {
    let slash = if path.starts_with("crates/") { 1 } else { 0 };
    let (end, _) = path.match_indices('/').nth(slash)?;
    path.get(..end)
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
    fn six_hundred_lines_are_the_most() {
        assert!(file_is_too_long(&file("a.rs", 600)).is_empty());
        assert_eq!(file_is_too_long(&file("a.rs", 601)).len(), 1);
        assert_eq!(file_is_too_long(&file("page.html", 601)).len(), 1);
        assert!(file_is_too_long(&file("README.md", 601)).is_empty());
        assert!(file_is_too_long(&file("testdata/a.html", 601)).is_empty());
    }

    #[test]
    fn a_long_file_must_be_listed() {
        check_ratchet("", 400, &[]);
        check_ratchet("", 401, &["401 lines, more than 400"]);
        check_ratchet("a.rs 401", 401, &[]);
    }

    #[test]
    fn a_listed_file_may_not_grow_and_what_it_lost_is_kept() {
        check_ratchet(
            "a.rs 410",
            411,
            &["grown from 410 to 411 lines; long files only shrink"],
        );
        check_ratchet("a.rs 410", 405, &["a.rs has become shorter than 410 lines"]);
        check_ratchet("a.rs 410", 12, &["a.rs has become shorter than 410 lines"]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        check_ratchet("# remark\n\na.rs many\n", 1, &["not a path and a number"]);
        check_ratchet("a.rs\n", 1, &["not a path and a number"]);
    }

    #[test]
    fn an_update_lowers_and_drops_but_never_raises_or_adds() {
        let files = [
            file("a.rs", 450),
            file("b.rs", 450),
            file("c.rs", 450),
            file("d.rs", 1),
        ];
        let old = "# remark\na.rs 500\nb.rs 420\nd.rs 410\ngone.rs 410\n";
        assert_eq!(
            lowered_ratchet(old, &files),
            "# remark\na.rs 450\nb.rs 420\n"
        );
    }

    #[test]
    fn a_crate_is_measured_over_all_its_files() {
        let half = |path: &str| file(path, 5_000);
        let files = [
            half("crates/a/src/lib.rs"),
            half("crates/a/tests/b.rs"),
            half("crates/c/d.rs"),
        ];
        assert!(crate_is_too_long(&files).is_empty());
        let more = [files.as_slice(), &[file("crates/a/build.rs", 1)]].concat();
        let problems = crate_is_too_long(&more);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].path, "crates/a/Cargo.toml");
    }
}
