//! Header lines that are copied from where they were read, many at once.

use std::ops::Range;

use super::request_head::write_line;
use crate::header_view::Line;

/// Lines of a head that wait to be copied, one after the other.
pub(super) struct CopiedLines<'b> {
    head: &'b [u8],
    range: Range<usize>,
}

impl<'b> CopiedLines<'b> {
    /// Begins with no line of this head.
    pub(super) const fn of(head: &'b [u8]) -> Self {
        Self { head, range: 0..0 }
    }

    /// Adds a line of the head. A line that does not stand there in canonical form is written anew.
    pub(super) fn add(&mut self, out: &mut Vec<u8>, line: &Line<'b>) {
        let Some(range) = self.canonical(line) else {
            self.flush(out);
            write_line(out, line.name, line.value);
            return;
        };
        if range.start != self.range.end {
            self.flush(out);
            self.range.start = range.start;
        }
        self.range.end = range.end;
    }

    /// Copies the lines that wait.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head[self.range.clone()]);
        self.range = self.range.end..self.range.end;
    }

    /// Returns where the line stands in the head, if it does: name, colon, one blank, value, CRLF.
    fn canonical(&self, line: &Line<'_>) -> Option<Range<usize>> {
        let head = self.head.as_ptr().addr();
        let start = line.name.as_ptr().addr().checked_sub(head)?;
        let value = line.value.as_ptr().addr().checked_sub(head)?;
        let (name_end, end) = (start + line.name.len(), value + line.value.len());
        let is_canonical = value == name_end + 2
            && self.head.get(name_end..value)? == b": "
            && self.head.get(end..end + 2)? == b"\r\n";
        is_canonical.then_some(start..end + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_out_in_canonical_form() {
        let head =
            b"x\r\nA: 1\r\nB: 2\r\nC:3\r\nD: \r\nE:\t5\r\nF: 6 \r\nG: 7\nH: 8\r\nI: 9\r\n\r\n";
        let mut lines = [httparse::EMPTY_HEADER; 16];
        let parsed = httparse::parse_headers(&head[3..], &mut lines).unwrap();
        let (_, lines) = parsed.unwrap();
        let copy = |skipped: &str| {
            let mut out = Vec::new();
            let mut copied = CopiedLines::of(head);
            for line in lines.iter().filter(|line| !skipped.contains(line.name)) {
                copied.add(&mut out, line);
            }
            copied.flush(&mut out);
            String::from_utf8(out).unwrap()
        };
        let expected = "A: 1\r\nB: 2\r\nC: 3\r\nD: \r\nE: 5\r\nF: 6\r\nG: 7\r\nH: 8\r\nI: 9\r\n";
        assert_eq!(copy(""), expected);
        assert_eq!(
            copy("BH"),
            expected.replace("B: 2\r\n", "").replace("H: 8\r\n", "")
        );
        assert_eq!(copy("ABCDEFGHI"), "");
    }

    // As when it was made anew.
    #[test]
    fn a_line_of_other_memory_is_written() {
        let line = Line {
            name: "a",
            value: b"1",
        };
        let mut out = Vec::new();
        let mut copied = CopiedLines::of(b"b: 2\r\n");
        copied.add(&mut out, &line);
        copied.flush(&mut out);
        assert_eq!(out, b"a: 1\r\n");
    }
}
