//! Does the source text keep the habits of the house? Sizes, stubs, sleeps, stray words.
//!
//! What the compiler, clippy and rustfmt can judge is left to them. Each rule is one small
//! function over text; [`RULES`] lists those that look at one file at a time.

mod code;
mod files;
mod lexer;
mod manifests;
mod problem;
mod size;
mod source;
mod text;

use std::fmt::Write as _;

use anyhow::{Context, bail};

use crate::workspace::root;
use problem::Problem;
use source::SourceFile;

/// Where the sizes of long files are written down.
const RATCHET: &str = "xtask/tidy-ratchet.txt";

/// A rule that looks at one file.
type Rule = fn(&SourceFile) -> Vec<Problem>;

/// The rules that look at one file at a time. One more is one more line here.
const RULES: &[Rule] = &[
    size::file_is_too_long,
    code::module_file_is_called_mod,
    code::module_does_not_say_what_it_is_for,
    code::stub_stands_in_for_code,
    code::test_is_ignored,
    code::unwrap_outside_tests,
    code::test_sleeps,
    text::unfinished_work_is_marked,
    text::line_ends_in_whitespace,
    text::tab_in_rust,
    text::path_of_one_machine,
];

/// Checks the source text of the workspace.
///
/// # Errors
///
/// Lists every finding as `file:line: what; what to do`.
pub(crate) fn check() -> anyhow::Result<()> {
    let files = files::read_all(root())?;
    let problems = problems(&files)?;
    if problems.is_empty() {
        return Ok(());
    }
    let mut list = String::new();
    for problem in &problems {
        write!(list, "\n{problem}").expect("a String takes all that is written to it");
    }
    bail!("{} untidy places:{list}", problems.len())
}

/// Lowers the numbers of the ratchet file to what is there.
///
/// # Errors
///
/// When the ratchet file cannot be read, understood or written.
pub(crate) fn update_ratchet() -> anyhow::Result<()> {
    let files = files::read_all(root())?;
    let path = root().join(RATCHET);
    let old = std::fs::read_to_string(&path).with_context(|| format!("reading {RATCHET}"))?;
    let new = size::lowered_ratchet(&old, &files);
    if new != old {
        std::fs::write(&path, new).with_context(|| format!("writing {RATCHET}"))?;
        println!("lowered {RATCHET}");
    }
    Ok(())
}

fn problems(files: &[SourceFile]) -> anyhow::Result<Vec<Problem>> {
    let text_of = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.with_context(|| format!("{path} is missing"))
    };
    let mut problems: Vec<Problem> = files
        .iter()
        .flat_map(|file| RULES.iter().flat_map(move |rule| rule(file)))
        .collect();
    problems.extend(size::ratchet_is_off(text_of(RATCHET)?, files));
    problems.extend(manifests::readme_names_another_rust(
        files,
        text_of("Cargo.toml")?,
    )?);
    problems.extend(manifests::clippy_file_forgets_a_line(
        files,
        text_of("clippy.toml")?,
    ));
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_tidy() {
        check().unwrap();
    }

    #[test]
    fn a_workspace_without_its_ratchet_file_is_not_called_tidy() {
        let error = problems(&[]).unwrap_err();
        assert_eq!(error.to_string(), "xtask/tidy-ratchet.txt is missing");
    }
}
