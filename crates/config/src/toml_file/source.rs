//! Lines and columns of a file's offsets.
//!
//! It keeps no text, so it cannot leak a secret into a message.

use std::sync::Arc;

/// Name of a file and offsets of its lines.
pub struct Source {
    name: Arc<str>,
    /// Offset of the first byte of each line.
    line_starts: Vec<usize>,
    /// Offsets of UTF-8 continuation bytes, so that columns count characters.
    continuations: Vec<usize>,
    end: usize,
}

/// A line and a column, both counted from 1.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Source {
    /// Indexes `text`.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let continuations = text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| byte & 0b1100_0000 == 0b1000_0000)
            .map(|(at, _)| at)
            .collect();
        Self {
            name: Arc::from(name),
            line_starts,
            continuations,
            end: text.len(),
        }
    }

    /// Returns the length of the text, in bytes.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.end
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Returns line and column of `offset`; an offset beyond the end is on the last line.
    #[must_use]
    pub fn position(&self, offset: usize) -> Position {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line.saturating_sub(1)];
        let continued = self.continuations.partition_point(|at| *at < offset)
            - self.continuations.partition_point(|at| *at < start);
        Position {
            line,
            column: offset - start - continued + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_one_and_columns_in_characters() {
        let source = Source::new("x", "ab\nçd\n\ne");
        let check = |offset, line, column| {
            assert_eq!(source.position(offset), Position { line, column });
        };
        check(0, 1, 1);
        check(1, 1, 2);
        check(3, 2, 1);
        check(5, 2, 2);
        check(7, 3, 1);
        check(8, 4, 1);
        check(99, 4, 92);
    }

    #[test]
    fn an_empty_text_has_one_line() {
        assert_eq!(
            Source::new("x", "").position(0),
            Position { line: 1, column: 1 }
        );
    }
}
