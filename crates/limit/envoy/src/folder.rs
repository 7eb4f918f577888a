//! Files of a folder: reading them, and noticing changes.
//!
//! It reads every file directly in the folder that ends in `.yaml` or `.yml` and does not begin
//! with a dot, in alphabetical order. A file may be a symbolic link whose target changes, as in a
//! Kubernetes config map.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config::{self as envoy, FILE_BYTES_MAX, Mistakes, Notice, SameDomain};
use anteroom_limit_store::shared::SharedCounts;

use crate::policy;

/// Most files. Each has a domain of its own unless they are merged.
const FILES_MAX: usize = 1_000;
/// Most bytes of all files together: they are in memory while they are read.
const BYTES_MAX: usize = 64 << 20;

/// Error of reading a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The folder cannot be read.
    #[error("cannot read the folder {}", path.display())]
    Folder {
        /// Path of the folder or file.
        path: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// The files are too many or too large.
    #[error(
        "too many or too large files in {}: at most {FILES_MAX} files and {BYTES_MAX} bytes",
        path.display()
    )]
    TooMuch {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The reader panicked, which is a defect of the program.
    #[error("the reader of the files panicked; please report this")]
    Panicked,
    /// The files have mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

impl FolderError {
    /// Returns the text of the error, with a line for each mistake.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Mistakes(Mistakes(mistakes)) => {
                mistakes.iter().map(ToString::to_string).collect()
            }
            Self::Folder { source, .. } | Self::File { source, .. } => {
                vec![format!("{self}: {source}")]
            }
            Self::TooMuch { .. } | Self::Panicked => vec![self.to_string()],
        }
    }
}

/// Fingerprint of the files: device and inode, size and times of each.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Stamp(Vec<(PathBuf, [i64; 7])>);

/// Content of the files.
#[derive(Debug)]
pub struct Limits {
    /// The limits.
    pub limits: envoy::RateLimits,
    /// Parts of the files that have no effect.
    pub notices: Vec<Notice>,
}

/// Returns the fingerprint of the files now.
pub(crate) fn stamp(folder: &Path) -> Result<Stamp, FolderError> {
    let mut stamps = Vec::new();
    for path in files(folder)? {
        let metadata = fs::metadata(&path);
        let metadata = metadata.map_err(|source| FolderError::File {
            path: path.clone(),
            source,
        })?;
        stamps.push((path, stamp_of(&metadata)));
    }
    Ok(Stamp(stamps))
}

fn stamp_of(metadata: &Metadata) -> [i64; 7] {
    let signed = |number: u64| i64::from_ne_bytes(number.to_ne_bytes());
    [
        signed(metadata.dev()),
        signed(metadata.ino()),
        signed(metadata.size()),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ]
}

/// Reads all files of a folder, and checks that each limit can be counted in `store`, or in this
/// process. Several files may have one domain only if domains are merged.
///
/// # Errors
///
/// [`FolderError`] with every mistake of every file.
pub fn read(
    folder: &Path,
    merge_domains: bool,
    store: Option<&dyn SharedCounts>,
) -> Result<Limits, FolderError> {
    let mut total = 0;
    let mut texts = Vec::new();
    for path in files(folder)? {
        let bytes = read_file(&path).map_err(|source| FolderError::File {
            path: path.clone(),
            source,
        })?;
        total += bytes.len();
        if total > BYTES_MAX {
            let path = folder.to_owned();
            return Err(FolderError::TooMuch { path });
        }
        texts.push((path.display().to_string(), bytes));
    }
    let files: Vec<_> = texts
        .iter()
        .map(|(name, bytes)| envoy::File { name, bytes })
        .collect();
    let same_domain = if merge_domains {
        SameDomain::Merged
    } else {
        SameDomain::Refused
    };
    let keep = |algorithm, requests, unit| policy::check((algorithm, requests, unit), store);
    let envoy::Read { limits, notices } = envoy::read_for(&files, same_domain, &keep)?;
    Ok(Limits { limits, notices })
}

/// Reads one byte more than a file may have, which suffices to see that it is too long.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = FILE_BYTES_MAX as u64 + 1;
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let of_folder = |source| FolderError::Folder {
        path: folder.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(of_folder)? {
        let path = entry.map_err(of_folder)?.path();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_yaml = path
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml");
        if is_hidden || !is_yaml || path.is_dir() {
            continue;
        }
        if files.len() == FILES_MAX {
            let path = folder.to_owned();
            return Err(FolderError::TooMuch { path });
        }
        files.push(path);
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const FILE: &str =
        "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]\n";

    fn names(folder: &Path) -> Vec<String> {
        let read = read(folder, true, None).unwrap();
        let limits = read.limits.limits();
        limits
            .iter()
            .map(|limit| limit.metric.to_string())
            .collect()
    }

    #[test]
    fn hidden_files_other_types_and_folders_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in [".a.yaml", "b.yaml~", "c.txt", "yaml"] {
            fs::write(path.join(name), "domain: [").unwrap();
        }
        fs::create_dir(path.join("d.yaml")).unwrap();
        fs::write(path.join("e.yml"), FILE).unwrap();
        assert_eq!(names(path), ["d.k"]);
    }

    #[test]
    fn every_mistake_of_every_file_is_reported_with_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("a.yaml"), FILE.replace("day", "fortnight")).unwrap();
        let log = "algorithm: sliding-log, requests_per_unit: 4000000000";
        fs::write(
            path.join("b.yaml"),
            FILE.replace("requests_per_unit: 1", log)
                .replace("domain: d", "domain: e"),
        )
        .unwrap();
        let lines = read(path, true, None).unwrap_err().lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].contains("a.yaml:2: invalid rate limit unit 'fortnight'"),
            "{lines:?}"
        );
        assert!(
            lines[1].contains("b.yaml:2: limit by 'sliding-log' cannot be kept"),
            "{lines:?}"
        );
        let missing = read(&path.join("none"), true, None).unwrap_err();
        assert!(missing.lines()[0].starts_with("cannot read the folder"));
    }

    #[test]
    fn a_link_with_another_target_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        // The layout of a config map: all files lie behind one link, which is replaced.
        for version in ["..1", "..2"] {
            fs::create_dir(path.join(version)).unwrap();
            fs::write(path.join(version).join("a.yaml"), FILE).unwrap();
        }
        symlink("..1", path.join("..data")).unwrap();
        symlink("..data/a.yaml", path.join("a.yaml")).unwrap();
        let before = stamp(path).unwrap();
        assert_eq!(before, stamp(path).unwrap());
        symlink("..2", path.join("..next")).unwrap();
        fs::rename(path.join("..next"), path.join("..data")).unwrap();
        assert_ne!(before, stamp(path).unwrap());
    }
}
