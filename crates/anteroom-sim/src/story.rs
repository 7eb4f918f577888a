//! Why are there four allocations, and what does each of them cost? Told with numbers from the code
//! that runs in the gateway, and checked against the article that the first three come from.
//!
//! The text is generated, so that it cannot say what the code does not do.

mod article;
mod crowd;
mod curves;
mod rehearsals;
mod tell;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The story: a Markdown text and the charts that it shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Story {
    /// The text; it refers to its charts as `allocations/NAME`.
    pub markdown: String,
    /// Names and contents of its charts, in the order of the text.
    pub charts: Vec<(String, String)>,
}

/// Why the story could not be written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteStoryError {
    /// The folder could not be made.
    #[error("cannot make the folder {}", folder.display())]
    MakeFolder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
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

/// Computes the story. Takes seconds; gives the same bytes every time.
#[must_use]
pub fn tell() -> Story {
    tell::tell()
}

/// Computes the story and writes `allocations.md` and `allocations/*.svg` into `folder`, over what
/// is there under these names. Returns the path of the text.
///
/// # Errors
///
/// [`WriteStoryError`] when a folder or a file cannot be written.
pub fn write(folder: &Path) -> Result<PathBuf, WriteStoryError> {
    let story = tell();
    let charts = folder.join("allocations");
    fs::create_dir_all(&charts).map_err(|source| WriteStoryError::MakeFolder {
        folder: charts.clone(),
        source,
    })?;
    for (name, svg) in &story.charts {
        write_file(charts.join(name), svg)?;
    }
    write_file(folder.join("allocations.md"), &story.markdown)
}

fn write_file(file: PathBuf, content: &str) -> Result<PathBuf, WriteStoryError> {
    match fs::write(&file, content) {
        Ok(()) => Ok(file),
        Err(source) => Err(WriteStoryError::Write { file, source }),
    }
}
