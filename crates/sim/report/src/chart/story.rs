//! Writer of a Markdown text with charts, into a file beside the folder of its charts.

use std::path::{Path, PathBuf};

use crate::chart::files::{WriteError, write_files};

/// Markdown text on one or several pages, with its charts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Story {
    /// Name of the story: pages refer to its charts as `NAME/CHART`.
    pub name: &'static str,
    /// Mark in each page by which a later run knows that it may overwrite it.
    pub mark: &'static str,
    /// Pages in their order; at least one.
    pub pages: Vec<Page>,
    /// Names and contents of its charts, in the order of the text.
    pub charts: Vec<(String, String)>,
}

/// Page of a story.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    /// Name of the page: its file is `NAME.md`.
    pub name: &'static str,
    /// Text in Markdown.
    pub markdown: String,
}

impl Story {
    /// Returns the text of all pages.
    #[must_use]
    pub fn markdown(&self) -> String {
        let pages = self.pages.iter().map(|page| page.markdown.as_str());
        pages.collect::<Vec<_>>().join("\n")
    }

    /// Writes pages and charts into `folder`, which it creates if necessary, and returns the path
    /// of the first page. It overwrites an earlier run of the same story, and nothing else.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] when the folder or a file cannot be written, or when another file
    /// exists at its path. In the last case nothing has been written yet.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, WriteError> {
        let charts = folder.join(self.name);
        let path = |page: &Page| folder.join(format!("{}.md", page.name));
        let first = path(&self.pages[0]);
        let drawn = self.charts.iter();
        let mut files: Vec<(PathBuf, &str)> = drawn
            .map(|(name, svg)| (charts.join(name), svg.as_str()))
            .collect();
        // The pages come last, so that they exist only with all of their charts.
        let pages = self.pages.iter().rev();
        files.extend(pages.map(|page| (path(page), page.markdown.as_str())));
        write_files(&charts, files, &[self.mark])?;
        Ok(first)
    }
}

/// Columns of a line of Markdown.
const COLUMNS: usize = 100;

/// Wraps the paragraphs and list items of a Markdown text. Headings, tables and fenced code stay.
pub(crate) fn wrapped(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut paragraph = String::new();
    let mut is_code = false;
    for line in markdown.lines() {
        let is_fence = line.starts_with("```");
        let is_kept = is_code || is_fence || line.is_empty() || line.starts_with(['|', '#']);
        if is_kept || line.starts_with("- ") {
            push_paragraph(&mut text, &std::mem::take(&mut paragraph));
        }
        if is_kept {
            text.push_str(line);
            text.push('\n');
        } else {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
        is_code ^= is_fence;
    }
    push_paragraph(&mut text, &paragraph);
    text
}

fn push_paragraph(text: &mut String, paragraph: &str) {
    let indent = if paragraph.starts_with("- ") {
        "  "
    } else {
        ""
    };
    let mut words = paragraph.split_ascii_whitespace().peekable();
    let mut column = 0;
    while let Some(word) = words.next() {
        let mut piece = word.to_owned();
        while let Some(next) = words.next_if(|next| begins_a_block(next)) {
            piece.push(' ');
            piece.push_str(next);
        }
        let length = piece.chars().count();
        if column > 0 && column + 1 + length > COLUMNS {
            text.push('\n');
            text.push_str(indent);
            column = indent.len();
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(&piece);
        column += length;
    }
    if column > 0 {
        text.push('\n');
    }
}

/// Whether a line that begins with this word could be a list item, a heading, a quote, a table or
/// an underline.
fn begins_a_block(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']);
    let is_item = number.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let is_mark = word.bytes().all(|byte| b"-+*=#".contains(&byte));
    is_item || is_mark || word.starts_with(['>', '|']) || word.starts_with("```")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_list_items_are_wrapped_and_all_else_stays() {
        let long = "word ".repeat(30);
        let first = "word ".repeat(20);
        let rest = "word ".repeat(10);
        let kept = format!("# {long}\n\n| {long} |\n\n```text\n{long}\n- a\n```\n");
        assert_eq!(wrapped(&kept), kept);
        let expected = format!("{}\n{}\n", first.trim(), rest.trim());
        assert_eq!(wrapped(&long), expected);
        let first = "word ".repeat(19);
        let rest = "word ".repeat(11);
        let item = format!("- {}\n  {}\n", first.trim(), rest.trim());
        assert_eq!(
            wrapped(&format!("{long}\n- {long}\n  ")),
            expected.clone() + &item
        );
        assert_eq!(
            wrapped(&format!("- {long}\n- b\n\n{long}")),
            item + "- b\n\n" + &expected
        );
    }

    #[test]
    fn no_wrapped_line_begins_a_list_or_a_heading() {
        for word in ["-", "+", "*", "=", "###", "12.", "3)", ">", "|", "```"] {
            for before in 1..100 {
                let text = format!("{} x {word} {}", "a".repeat(before), "b".repeat(90));
                let lines = wrapped(&text);
                let is_fit = |line: &str| line.len() <= COLUMNS && !line.starts_with(word);
                assert!(lines.lines().all(is_fit), "{lines}");
            }
        }
        assert_eq!(wrapped("a\nb"), "a b\n");
    }

    #[test]
    fn a_story_overwrites_itself_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let story = Story {
            name: "story",
            mark: "<!-- a story",
            pages: vec![Page {
                name: "story",
                markdown: "<!-- a story -->\n".to_owned(),
            }],
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
