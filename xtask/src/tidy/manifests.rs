//! Rules about files that must agree: README and `rust-version`, the clippy.toml files, and pages
//! that name source files.

use anyhow::Context;

use super::problem::Problem;
use super::source::SourceFile;

/// Checks that the README names only the Rust version that `Cargo.toml` requires.
///
/// # Errors
///
/// If the root manifest has no `workspace.package.rust-version`.
pub(super) fn readme_names_another_rust(
    files: &[SourceFile],
    manifest: &SourceFile,
) -> anyhow::Result<Vec<Problem>> {
    let wanted = rust_version(manifest)?;
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path == "README.md") {
        for line in &file.lines {
            for named in rust_versions(&line.text) {
                if named != wanted {
                    problems.push(Problem::new(
                        &file.path,
                        line.number,
                        format!("Rust {named}, but Cargo.toml requires {wanted}"),
                        "change the one that is wrong",
                    ));
                }
            }
        }
    }
    Ok(problems)
}

fn rust_version(manifest: &SourceFile) -> anyhow::Result<String> {
    let lines: Vec<&str> = manifest
        .lines
        .iter()
        .map(|line| line.text.as_str())
        .collect();
    let manifest: toml::Table = lines.join("\n").parse().context("reading Cargo.toml")?;
    let version = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package")?.get("rust-version")?.as_str());
    version
        .map(str::to_owned)
        .context("Cargo.toml has no workspace.package.rust-version")
}

/// Returns the versions after the word Rust, rustc, rustup, cargo or MSRV: `Rust 1.95`, `rustc >=
/// 1.95`, `MSRV: 1.95+`, `rust-1.95-blue`.
fn rust_versions(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_about_rust = false;
    let is_separator = |character: char| !character.is_alphanumeric() && character != '.';
    for word in line.split(is_separator) {
        let word = word.trim_matches('.').to_lowercase();
        match word.as_str() {
            "rust" | "rustc" | "rustup" | "cargo" | "msrv" => is_about_rust = true,
            // Words between the name and the number.
            "" | "version" | "at" | "least" | "is" | "v" => {}
            number if is_about_rust && is_version(number) => found.push(word),
            _ => is_about_rust = false,
        }
    }
    found
}

/// Returns whether a word is a version of Rust, such as `1.95` or `1.95.0`.
fn is_version(word: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    word.strip_prefix("1.")
        .is_some_and(|rest| rest.split('.').all(is_number))
}

/// Checks that a crate's clippy.toml repeats each line of the root's, which it replaces.
pub(super) fn clippy_file_lacks_a_line(files: &[SourceFile], root: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files {
        if !file.path.ends_with("/clippy.toml") {
            continue;
        }
        for line in &root.lines {
            let is_repeated = file.lines.iter().any(|own| own.text == line.text);
            if !is_repeated && !line.text.starts_with('#') {
                problems.push(Problem::new(
                    &file.path,
                    1,
                    format!(
                        "lacks line {} of the root's: {}",
                        line.number,
                        line.text.trim()
                    ),
                    "repeat it: this file replaces the root's",
                ));
            }
        }
    }
    problems
}

/// Checks that source files named in pages exist, by their path from the root or its end.
pub(super) fn page_names_a_missing_file(files: &[SourceFile]) -> Vec<Problem> {
    let is_page = |file: &&SourceFile| {
        file.has_extension(&["md"]) && file.path != "CHANGELOG.md" && !file.is_sample()
    };
    let mut problems = Vec::new();
    for page in files.iter().filter(is_page) {
        for line in &page.lines {
            // Every second piece is between backticks.
            for named in line.text.split('`').skip(1).step_by(2) {
                if is_source_path(named) && !exists(files, named) {
                    let what = format!("names {named}, which does not exist");
                    let remedy = "name the file that replaced it";
                    problems.push(Problem::new(&page.path, line.number, what, remedy));
                }
            }
        }
    }
    problems
}

fn is_source_path(named: &str) -> bool {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_file = named.contains('/') && named.ends_with(".rs");
    (is_file || named.starts_with("crates/")) && named.chars().all(is_path)
}

fn exists(files: &[SourceFile], named: &str) -> bool {
    let named = named.trim_end_matches('/');
    let (end, folder) = (format!("/{named}"), format!("{named}/"));
    files.iter().any(|file| {
        file.path == named || file.path.ends_with(&end) || file.path.starts_with(&folder)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[workspace.package]\nrust-version = \"1.95\"\n";

    fn check_readme(readme: &str, lines: &[usize]) {
        let files = [SourceFile::new("README.md", readme)];
        let manifest = SourceFile::new("Cargo.toml", MANIFEST);
        let problems = readme_names_another_rust(&files, &manifest).unwrap();
        let found: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, lines, "{readme}");
    }

    #[test]
    fn another_rust_version_in_the_readme_is_found() {
        check_readme("Needs Rust 1.85 or newer.", &[1]);
        check_readme("a\nrustc >= 1.96, cargo (version 1.95)", &[2]);
        check_readme("![msrv](badge/rust-1.80.1-blue)", &[1]);
        check_readme("MSRV: 1.94+", &[1]);
    }

    #[test]
    fn the_right_version_and_numbers_of_other_things_are_fine() {
        check_readme("Rust 1.95, `cargo` and gcc.", &[]);
        check_readme("Written in Rust, with hyper 1.12.", &[]);
        check_readme("HTTP/1.1 in 1.2 seconds", &[]);
    }

    #[test]
    fn a_manifest_without_a_version_is_an_error() {
        assert!(rust_version(&SourceFile::new("Cargo.toml", "[workspace]")).is_err());
        assert!(rust_version(&SourceFile::new("Cargo.toml", "[")).is_err());
    }

    #[test]
    fn a_clippy_file_that_lacks_a_line_is_found() {
        let root = SourceFile::new("clippy.toml", "# why\na = 1\nb = 2\n");
        let own = |text| [SourceFile::new("crates/a/clippy.toml", text)];
        assert_eq!(clippy_file_lacks_a_line(&own("a = 1\n"), &root).len(), 1);
        assert!(clippy_file_lacks_a_line(&own("b = 2\nc = 3\na = 1\n"), &root).is_empty());
    }

    #[test]
    fn a_page_that_names_a_missing_file_is_found() {
        let check = |text: &str, lines: &[usize]| {
            let files = [
                SourceFile::new("docs/a.md", text),
                SourceFile::new("crates/a/src/b.rs", "//! b"),
            ];
            let found = page_names_a_missing_file(&files);
            let found: Vec<usize> = found.iter().map(|problem| problem.line).collect();
            assert_eq!(found, lines, "{text}");
        };
        check(
            "see `crates/a/src/b.rs`, `src/b.rs` and `crates/a/src`",
            &[],
        );
        check("see\n`crates/a/src/c.rs`", &[2]);
        check("see `a/c.rs` or `crates/b`", &[1, 1]);
        check("`lib.rs`, `a::b`, `crates/*/src`, crates/b", &[]);
    }
}
