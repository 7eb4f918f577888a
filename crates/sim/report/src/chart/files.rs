//! Writer of chart files into a folder; it never overwrites a file of another program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Error of writing files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The folder could not be created.
    #[error("cannot make the folder {}", folder.display())]
    MakeFolder {
        /// Folder.
        folder: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// A file of that name exists that no run has written; nothing was written.
    #[error("{} is there already and was not written by a run of the simulator", file.display())]
    NotOurs {
        /// The file that exists.
        file: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {}", file.display())]
    Write {
        /// File that could not be written.
        file: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
}

/// Writes files into a folder, which it creates if necessary. It writes all of them, or none if one
/// would replace a file of another program.
///
/// A file may be replaced if it has the mark of a chart, or one of `marks`.
///
/// # Errors
///
/// Returns [`WriteError`]; with [`WriteError::NotOurs`], nothing has been written yet.
pub fn write_files(
    folder: &Path,
    files: Vec<(PathBuf, &str)>,
    marks: &[&str],
) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError::MakeFolder {
        folder: folder.to_owned(),
        source,
    })?;
    for (file, _) in &files {
        check_may_be_written(file, marks)?;
    }
    for (file, content) in files {
        fs::write(&file, content).map_err(|source| WriteError::Write { file, source })?;
    }
    Ok(())
}

/// Checks that a file does not exist, or has a mark.
fn check_may_be_written(file: &Path, marks: &[&str]) -> Result<(), WriteError> {
    let content = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            let file = file.to_owned();
            return Err(WriteError::Write { file, source });
        }
        Ok(content) => content,
    };
    let text = String::from_utf8_lossy(&content);
    if [crate::chart::MARK]
        .iter()
        .chain(marks)
        .any(|mark| text.contains(mark))
    {
        return Ok(());
    }
    Err(WriteError::NotOurs {
        file: file.to_owned(),
    })
}
