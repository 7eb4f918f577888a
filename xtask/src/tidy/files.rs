//! Files that tidy checks: all text below the root that Git does not ignore.
//!
//! They are listed by the file system and not by Git, so that new files and unpacked archives are
//! checked, too.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use super::source::SourceFile;

/// Reads all text files below `root`, sorted by path.
///
/// # Errors
///
/// If something below `root` cannot be read, or there is no Rust file.
pub(super) fn read_all(root: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let ignored = fs::read_to_string(root.join(".gitignore")).context("reading .gitignore")?;
    let mut skipped = anchored(&ignored);
    skipped.push(".git");
    let mut files = Vec::new();
    read_folder(root, "", &skipped, &mut files)?;
    // A check without files would pass.
    ensure!(
        files.iter().any(SourceFile::is_rust),
        "no Rust source below {}",
        root.display()
    );
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Returns the paths in a `.gitignore` that begin with a slash. Patterns match no text files.
fn anchored(ignored: &str) -> Vec<&str> {
    ignored
        .lines()
        .filter_map(|line| line.trim_end().strip_prefix('/'))
        .map(|path| path.trim_end_matches('/'))
        .collect()
}

fn read_folder(
    folder: &Path,
    prefix: &str,
    skipped: &[&str],
    files: &mut Vec<SourceFile>,
) -> anyhow::Result<()> {
    let reading = || format!("reading {}", folder.display());
    for entry in fs::read_dir(folder).with_context(reading)? {
        let entry = entry.with_context(reading)?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if skipped.contains(&path.as_str()) {
            continue;
        }
        // Links are not followed: their targets are read elsewhere, or are not ours.
        let kind = entry.file_type().with_context(reading)?;
        if kind.is_dir() {
            read_folder(&entry.path(), &format!("{path}/"), skipped, files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).with_context(|| format!("reading {path}"))?;
            if let Some(text) = as_text(bytes) {
                files.push(SourceFile::new(&path, &text));
            }
        }
    }
    Ok(())
}

/// Returns the text; `None` for binary files.
fn as_text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn this_file_is_read_and_build_output_is_not() {
        let files = read_all(root()).unwrap();
        let has = |path: &str| files.iter().any(|file| file.path == path);
        assert!(has("xtask/src/tidy/files.rs"));
        assert!(has(".ci/run"));
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
    }

    #[test]
    fn only_anchored_paths_are_taken_from_the_ignore_file() {
        assert_eq!(
            anchored("/target\n*.profraw\n/fuzz/corpus/\n\n"),
            ["target", "fuzz/corpus"]
        );
    }

    #[test]
    fn binary_files_are_skipped() {
        assert_eq!(as_text(vec![0xff, 0xfe]), None);
        assert_eq!(as_text(b"a\0b".to_vec()), None);
        assert_eq!(as_text(b"ab".to_vec()).as_deref(), Some("ab"));
    }
}
