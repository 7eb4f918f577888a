//! Files of this repository.

use std::path::{Path, PathBuf};

/// Returns the path of a file or folder of this repository.
#[must_use]
pub fn path_of(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(relative)
}

/// Returns the text of a file of this repository.
///
/// # Panics
///
/// If there is none, which fails the test.
#[must_use]
pub fn read(relative: &str) -> String {
    let path = path_of(relative);
    match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => panic!("cannot read {relative}: {error}"),
    }
}

/// Returns the indented block of a page that begins with this line, without the indent.
///
/// # Panics
///
/// If the page has none.
#[must_use]
pub fn block(page: &str, first: &str) -> String {
    let text = read(page);
    let lines = text.lines().skip_while(|line| line.trim_start() != first);
    let block = lines.map_while(|line| {
        let is_blank = line.is_empty();
        line.strip_prefix("    ")
            .or_else(|| is_blank.then_some(line))
    });
    let block: String = block.map(|line| format!("{line}\n")).collect();
    assert!(!block.is_empty(), "{page} has no block {first:?}");
    block
}

/// Returns the files below a folder of this repository, as sorted paths from its top.
///
/// # Panics
///
/// If the folder cannot be read.
#[must_use]
pub fn below(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(path_of(folder)) {
        Ok(entries) => entries,
        Err(error) => panic!("cannot read {folder}: {error}"),
    };
    for entry in entries.flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
