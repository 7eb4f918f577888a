//! Where does a text go that shows charts? Into a file beside the folder of its charts.

use std::path::{Path, PathBuf};

use crate::chart::files::{WriteError, write_files};

/// A Markdown text and the charts that it shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Story {
    /// What it is called: the text is `NAME.md`, and refers to its charts as `NAME/CHART`.
    pub name: &'static str,
    /// Stands in the text, so that a later run knows that it may overwrite it.
    pub mark: &'static str,
    /// The text.
    pub markdown: String,
    /// Names and contents of its charts, in the order of the text.
    pub charts: Vec<(String, String)>,
}

impl Story {
    /// Writes text and charts into `folder`, which is made if it is not there, and returns the path
    /// of the text. Overwrites an earlier run of the same story, and nothing else.
    ///
    /// # Errors
    ///
    /// [`WriteError`] when the folder or a file cannot be written, or when a file is in the way
    /// that holds no such story; in this last case nothing has been written yet.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, WriteError> {
        let charts = folder.join(self.name);
        let text = folder.join(format!("{}.md", self.name));
        let drawn = self.charts.iter();
        let mut files: Vec<(PathBuf, &str)> = drawn
            .map(|(name, svg)| (charts.join(name), svg.as_str()))
            .collect();
        // Last, so that a text is only there when all of its charts are.
        files.push((text.clone(), &self.markdown));
        write_files(&charts, files, &[self.mark])?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_overwrites_itself_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let story = Story {
            name: "story",
            mark: "<!-- a story",
            markdown: "<!-- a story -->\n".to_owned(),
            charts: vec![("a.svg".to_owned(), crate::chart::MARK.to_owned())],
        };
        let text = story.write(folder.path()).unwrap();
        assert_eq!(text, folder.path().join("story.md"));
        let chart = folder.path().join("story").join("a.svg");
        assert_eq!(std::fs::read_to_string(chart).unwrap(), crate::chart::MARK);
        assert_eq!(story.write(folder.path()).unwrap(), text);
        std::fs::write(&text, "my own notes").unwrap();
        let error = story.write(folder.path()).unwrap_err();
        assert!(matches!(error, WriteError::NotOurs { file } if file == text));
    }
}
