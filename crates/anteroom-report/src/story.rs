//! Why are there four allocations, and what does each of them cost? Told with numbers from the code
//! that runs in the gateway, and checked against the article that the first three come from.
//!
//! The text is generated, so that it cannot say what the code does not do.

mod article;
mod crowd;
mod curves;
mod rehearsals;
mod tell;

use std::path::{Path, PathBuf};

use crate::ReportError;
use crate::files::write_files;

/// The story: a Markdown text and the charts that it shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Story {
    /// The text; it refers to its charts as `allocations/NAME`.
    pub markdown: String,
    /// Names and contents of its charts, in the order of the text.
    pub charts: Vec<(String, String)>,
}

/// Stands in the text, so that a later run knows that it may overwrite it.
pub(crate) const MARK: &str = "<!-- Written by `anteroom simulate --story`.";

/// Computes the story. Takes seconds; gives the same bytes every time.
#[must_use]
pub fn tell() -> Story {
    tell::tell()
}

impl Story {
    /// Writes `allocations.md` and `allocations/*.svg` into `folder`, which is made if it is not
    /// there, and returns the path of the text. Overwrites an earlier story, and nothing else.
    ///
    /// # Errors
    ///
    /// [`ReportError`] when the folder or a file cannot be written, or when a file is in the way
    /// that holds no story; in this last case nothing has been written yet.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, ReportError> {
        let charts = folder.join("allocations");
        let text = folder.join("allocations.md");
        let drawn = self.charts.iter();
        let mut files: Vec<(PathBuf, &str)> = drawn
            .map(|(name, svg)| (charts.join(name), svg.as_str()))
            .collect();
        files.push((text.clone(), &self.markdown));
        write_files(&charts, files)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_overwrites_a_story_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let story = Story {
            markdown: format!("{MARK} -->\n"),
            charts: vec![("a.svg".to_owned(), anteroom_chart::MARK.to_owned())],
        };
        let text = story.write(folder.path()).unwrap();
        assert_eq!(story.write(folder.path()).unwrap(), text);
        std::fs::write(&text, "my own notes").unwrap();
        let error = story.write(folder.path()).unwrap_err();
        assert!(matches!(error, ReportError::NotOurs { file } if file == text));
    }
}
