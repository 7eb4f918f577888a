//! Does the source text keep the habits of the house? Lengths, sleeps in tests, stray marks.
//!
//! What the compiler, clippy and rustfmt can judge is left to them.

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
    problems.extend(manifests::clippy_file_forgets_a_line(
        files,
        text_of("clippy.toml")?,
    ));
    problems.extend(manifests::page_names_a_missing_file(files));
    problems.extend(links::link_leads_nowhere(files));
    problems.extend(links::page_stands_in_no_summary(files));
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
    fn a_workspace_without_its_manifest_is_not_called_tidy() {
        let error = problems(&[]).unwrap_err();
        assert_eq!(error.to_string(), "Cargo.toml is missing");
    }
}
