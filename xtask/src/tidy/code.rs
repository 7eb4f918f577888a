//! Is anything in Rust code that should not be? Stubs, ignored tests, unwraps, sleeps.
//!
//! The words looked for are put together from pieces, so that this file does not hold them.

use super::problem::Problem;
use super::source::{Line, SourceFile};

/// A comment that allows a sleep in a test: time is paused there, nothing really waits.
const PAUSED_TIME: &str = "tidy: paused time";
/// A comment that allows a sleep in a test: that time passes is what happens there, as when a
/// visitor reads a page or a process is stopped. Nothing is expected to be so afterwards.
const TIME_PASSES: &str = "tidy: time passes";

/// Findings in the lines of a Rust file for which `is_bad` holds.
fn lines_where(
    file: &SourceFile,
    is_bad: impl Fn(&Line) -> bool,
    what: &str,
    remedy: &str,
) -> Vec<Problem> {
    if !file.is_rust() {
        return Vec::new();
    }
    let bad = file.lines.iter().filter(|line| is_bad(line));
    bad.map(|line| Problem::new(&file.path, line.number, what, remedy))
        .collect()
}

/// A module `foo` is `foo.rs` beside `foo/`: ten files of one name cannot be told apart in an
/// editor.
pub(super) fn module_file_is_called_mod(file: &SourceFile) -> Vec<Problem> {
    if !file.is_rust() || !file.path.ends_with("/mod.rs") {
        return Vec::new();
    }
    let remedy = "name it after the module, beside the module's folder";
    vec![Problem::new(
        &file.path,
        1,
        "module file called mod.rs",
        remedy,
    )]
}

/// Every file starts with what question it answers.
pub(super) fn module_does_not_say_what_it_is_for(file: &SourceFile) -> Vec<Problem> {
    let first = file.lines.first().map_or("", |line| line.raw.as_str());
    if !file.is_rust() || first.starts_with("//!") {
        return Vec::new();
    }
    let remedy = "say which question it answers and what it deliberately does not do";
    vec![Problem::new(
        &file.path,
        1,
        "file does not start with //!",
        remedy,
    )]
}

/// Nothing pretends to be there.
pub(super) fn stub_stands_in_for_code(file: &SourceFile) -> Vec<Problem> {
    let stubs = [concat!("to", "do!"), concat!("unimple", "mented!")];
    let is_stub = |line: &Line| stubs.iter().any(|stub| has_word(&line.code, stub));
    lines_where(
        file,
        is_stub,
        "a stub",
        "write the code, or leave the function out",
    )
}

/// A test that does not run proves nothing.
pub(super) fn test_is_ignored(file: &SourceFile) -> Vec<Problem> {
    let is_ignored = |line: &Line| {
        let dense: String = line.code.split_whitespace().collect();
        dense.contains(concat!("#[", "ignore"))
            || (dense.contains("#[cfg_attr(") && dense.contains(",ignore"))
    };
    let remedy = "make it fast and certain enough to run, or delete it";
    lines_where(file, is_ignored, "an ignored test", remedy)
}

/// What cannot fail says why; what can fail says what then.
pub(super) fn unwrap_outside_tests(file: &SourceFile) -> Vec<Problem> {
    let unwraps = |line: &Line| !line.is_test && line.code.contains(".unwrap()");
    let remedy = "return an error, or expect(\"why it cannot fail\")";
    lines_where(file, unwraps, "unwrap outside tests", remedy)
}

/// A test that sleeps is slow when it passes and flaky when it does not.
pub(super) fn test_sleeps(file: &SourceFile) -> Vec<Problem> {
    let sleeps = |line: &Line| {
        let is_marked = [PAUSED_TIME, TIME_PASSES]
            .iter()
            .any(|marker| line.comment.contains(marker));
        let may_pause = is_marked && !line.code.contains("thread::");
        line.is_test && !may_pause && calls_sleep(&line.code)
    };
    let remedy = "wait for the condition itself; under tokio's paused time say so on the line: \
                  // tidy: paused time; where nothing is awaited but time: // tidy: time passes";
    lines_where(file, sleeps, "a test sleeps", remedy)
}

/// `sleep(...)` and `time::sleep(...)`, but not a method (a clock made for tests may have one) and
/// not the definition of a function of that name.
fn calls_sleep(code: &str) -> bool {
    ["sleep(", "sleep_until(", "sleep_ms("].iter().any(|call| {
        code.match_indices(call).any(|(at, _)| {
            let before = code.get(..at).unwrap_or_default();
            !before.ends_with(['.', '_'])
                && !before.ends_with(char::is_alphanumeric)
                && !before.trim_end().ends_with("fn")
        })
    })
}

/// Whether `word` stands in `code` and is not the end of a longer word.
fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code.get(..at).unwrap_or_default();
        !before.ends_with(|last: char| last.is_alphanumeric() || last == '_')
    })
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
    const TEST: &str = "crates/a/tests/all.rs";

    #[test]
    fn a_file_called_mod_is_found() {
        check(
            module_file_is_called_mod,
            "crates/a/src/room/mod.rs",
            "//! a",
            &[1],
        );
        check(
            module_file_is_called_mod,
            "crates/a/src/room.rs",
            "//! a",
            &[],
        );
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_for_is_found() {
        let rule = module_does_not_say_what_it_is_for;
        check(rule, CODE, "use std::fmt;\n//! late\n", &[1]);
        check(rule, CODE, "", &[1]);
        check(rule, CODE, "//! Answers.\n", &[]);
        check(rule, "README.md", "# Title\n", &[]);
        check(rule, "crates/a/testdata/sample.rs", "fn a() {}\n", &[]);
    }

    #[test]
    fn stubs_are_found_in_code_and_not_in_prose() {
        let stub = concat!("    to", "do!()\n");
        check(stub_stands_in_for_code, CODE, stub, &[1]);
        let other = concat!("a();\nunimple", "mented!(\"b\")\n");
        check(stub_stands_in_for_code, CODE, other, &[2]);
        check(stub_stands_in_for_code, CODE, &format!("// {stub}"), &[]);
        check(
            stub_stands_in_for_code,
            CODE,
            &format!("my_{}", stub.trim()),
            &[],
        );
    }

    #[test]
    fn ignored_tests_are_found() {
        check(
            test_is_ignored,
            TEST,
            concat!("#[", "ignore]\nfn a() {}"),
            &[1],
        );
        check(
            test_is_ignored,
            TEST,
            concat!("#[", "ignore = \"slow\"]"),
            &[1],
        );
        check(test_is_ignored, TEST, "#[cfg_attr(unix, ignore)]", &[1]);
        check(
            test_is_ignored,
            TEST,
            "#[test]\nfn an_ignored_header() {}",
            &[],
        );
    }

    #[test]
    fn unwraps_are_found_outside_tests_only() {
        let text = "a.unwrap();\n// b.unwrap()\n#[cfg(test)]\nmod tests {\n    c.unwrap();\n}\n";
        check(unwrap_outside_tests, CODE, text, &[1]);
        check(unwrap_outside_tests, TEST, text, &[]);
    }

    #[test]
    fn sleeps_are_found_in_tests_only() {
        let text =
            "std::thread::sleep(a);\ntokio::time::sleep(a).await;\nsleep(a);\nsleep_until(a);\n";
        check(test_sleeps, TEST, text, &[1, 2, 3, 4]);
        check(
            test_sleeps,
            "crates/a/src/room/tests.rs",
            text,
            &[1, 2, 3, 4],
        );
        check(test_sleeps, CODE, text, &[]);
    }

    #[test]
    fn paused_time_and_clocks_made_for_tests_may_sleep() {
        let marked = "tokio::time::sleep(a).await; // tidy: paused time\n";
        check(test_sleeps, TEST, marked, &[]);
        let marked = "tokio::time::sleep(a).await; // tidy: time passes\n";
        check(test_sleeps, TEST, marked, &[]);
        check(
            test_sleeps,
            TEST,
            "thread::sleep(a); // tidy: paused time\n",
            &[1],
        );
        check(
            test_sleeps,
            TEST,
            "clock.sleep(a);\nfn sleep(a: Span) {}\noversleep(a);\n",
            &[],
        );
    }
}
