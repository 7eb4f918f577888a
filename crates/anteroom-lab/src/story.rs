//! What do limits of calls get wrong, and what does it cost to get them right? The article's argument
//! ("Distributed Rate-Limiting Algorithms", 2022), with figures from the code that runs in the gateway
//! and from the models beside it.
//!
//! The text is generated, so that it cannot say what the code does not do.

mod buckets;
mod facts;
mod opening;
mod sharing;
mod windows;

use std::fmt::Arguments;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anteroom_chart::Chart;
use anteroom_chart::files::{WriteError, write_files};

/// The story: a Markdown text and the charts that it shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Story {
    /// The text; it refers to its charts as `rate-limits/NAME`.
    pub markdown: String,
    /// Names and contents of its charts, in the order of the text.
    pub charts: Vec<(String, String)>,
}

/// Stands in the text, so that a later run knows that it may overwrite it.
const MARK: &str = "<!-- Written by `anteroom simulate limits --story`.";

/// Computes the story. Takes seconds; gives the same bytes every time.
#[must_use]
pub fn tell() -> Story {
    let mut page = Page::default();
    opening::push(&mut page);
    windows::push(&mut page);
    buckets::push(&mut page);
    sharing::push(&mut page);
    opening::push_choice(&mut page);
    let file = |chart: Chart| (chart.file_name, chart.svg);
    Story {
        markdown: page.text,
        charts: page.charts.into_iter().map(file).collect(),
    }
}

impl Story {
    /// Writes `rate-limits.md` and `rate-limits/*.svg` into `folder`, which is made if it is not there,
    /// and returns the path of the text. Overwrites an earlier story, and nothing else.
    ///
    /// # Errors
    ///
    /// [`WriteError`] when the folder or a file cannot be written, or when a file is in the way that
    /// holds no story; in this last case nothing has been written yet.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, WriteError> {
        let charts = folder.join("rate-limits");
        let text = folder.join("rate-limits.md");
        let drawn = self.charts.iter();
        let mut files: Vec<(PathBuf, &str)> = drawn
            .map(|(name, svg)| (charts.join(name), svg.as_str()))
            .collect();
        files.push((text.clone(), &self.markdown));
        write_files(&charts, files, &[MARK])?;
        Ok(text)
    }
}

/// The text as far as it is written, and the charts that it shows.
#[derive(Debug, Default)]
struct Page {
    text: String,
    charts: Vec<Chart>,
}

impl Page {
    fn push(&mut self, what: Arguments<'_>) {
        self.text
            .write_fmt(what)
            .expect("writing to a string cannot fail");
    }

    /// Shows a chart, with its description for those who cannot see it.
    fn show(&mut self, chart: Chart) {
        let Chart {
            title,
            description,
            file_name,
            ..
        } = &chart;
        let line = format!("![{title}. {description}](rate-limits/{file_name})\n\n");
        self.text.push_str(&line);
        self.charts.push(chart);
    }

    /// A table: heads of its columns, of which the first is of words, then its rows.
    fn table<const N: usize>(&mut self, heads: [&str; N], rows: &[[String; N]]) {
        let mut line = |cells: &[String]| {
            self.text.push_str(&format!("| {} |\n", cells.join(" | ")));
        };
        line(&heads.map(str::to_owned));
        let rule = |at: usize| if at == 0 { "---" } else { "---:" };
        line(&std::array::from_fn::<String, N, _>(|at| {
            rule(at).to_owned()
        }));
        for row in rows {
            line(row);
        }
        self.text.push('\n');
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
        assert!(matches!(error, WriteError::NotOurs { file } if file == text));
    }
}
