//! Where do charts go? Into a folder, and never over a file that somebody else wrote.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why files could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The folder could not be made.
    #[error("cannot make the folder {}", folder.display())]
    MakeFolder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of that name is there that no run wrote: nothing was written.
    #[error("{} is there already and was not written by a run of the simulator", file.display())]
    NotOurs {
        /// Which.
        file: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {}", file.display())]
    Write {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Writes files into a folder that is made if it is not there; all of them, or none if one would
/// replace a file that nobody wrote from here.
///
/// A file may be replaced that bears the mark of a chart, or one of `marks`.
///
/// # Errors
///
/// [`WriteError`]; where it is [`WriteError::NotOurs`], nothing has been written yet.
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

/// Whether a file is not there, or bears a mark.
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
