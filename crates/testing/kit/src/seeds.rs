//! Seeds of fuzzers: the files of a folder, one input each.
//!
//! `cargo fuzz` uses the same folders; see `fuzz/README.md`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Reads all files of a folder, sorted by name.
///
/// # Panics
///
/// If it cannot be read or is empty: a test without seeds tests nearly nothing.
#[must_use]
pub fn of_folder(folder: &Path) -> Vec<Vec<u8>> {
    read(folder, |_| true)
}

/// Reads the files of a folder that end in a dot and `extension`, sorted by name.
///
/// # Panics
///
/// As [`of_folder`].
#[must_use]
pub fn of_folder_with_extension(folder: &Path, extension: &str) -> Vec<Vec<u8>> {
    read(folder, |path| {
        path.extension() == Some(OsStr::new(extension))
    })
}

fn read(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read to its end").path())
        .filter(|path| path.is_file() && is_wanted(path))
        .collect();
    assert!(!paths.is_empty(), "no seeds in {}", folder.display());
    // The order of a folder differs between machines, and a seed must mean the same everywhere.
    paths.sort();
    let seeds = paths.iter().map(|path| {
        fs::read(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
    });
    seeds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_by_extension() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(of_folder_with_extension(folder, "toml").len(), 1);
        assert!(of_folder(&folder.join("src")).len() >= 3);
    }

    #[test]
    #[should_panic(expected = "no seeds in")]
    fn a_folder_without_seeds_is_an_error() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let _ = of_folder_with_extension(folder, "seed");
    }
}
