//! Checks of the source text: lengths, sleeps in tests, marks of unfinished work, words.
//!
//! The compiler, clippy and rustfmt check the rest.

mod files;
mod links;
mod manifests;
mod problem;
mod prose;
mod rules;
mod source;
mod words;

use std::fmt::Write as _;

use anyhow::{Context, bail};

use crate::workspace::root;
use problem::Problem;
use rules::RULES;
use source::SourceFile;

/// Checks the source text of the workspace.
///
/// # Errors
///
/// If there are findings; the error lists each as `file:line: problem; remedy`.
pub(crate) fn check() -> anyhow::Result<()> {
    let files = files::read_all(root())?;
    let problems = problems(&files)?;
    if problems.is_empty() {
        return Ok(());
    }
    let mut list = String::new();
    for problem in &problems {
        write!(list, "\n{problem}").expect("writing to a String does not fail");
    }
    bail!("{} findings:{list}", problems.len())
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
    problems.extend(manifests::readme_names_another_rust(
        files,
        text_of("Cargo.toml")?,
    )?);
    problems.extend(manifests::clippy_file_lacks_a_line(
        files,
        text_of("clippy.toml")?,
    ));
    problems.extend(manifests::page_names_a_missing_file(files));
    problems.extend(links::link_target_is_missing(files));
    problems.extend(links::page_is_not_in_summary(files));
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
    fn a_workspace_without_its_manifest_is_an_error() {
        let error = problems(&[]).unwrap_err();
        assert_eq!(error.to_string(), "Cargo.toml is missing");
    }
}
