//! Check of a template's tags. The template engine finds mistakes as well, but without their lines.

use std::ops::ControlFlow;

use super::variables::NAMES;

/// Most mistakes of a template that are reported. More of them usually have one cause.
const MISTAKES_MAX: usize = 20;

/// Tag with its first character, its name and its line.
struct Tag<'a> {
    kind: char,
    name: &'a str,
    line: usize,
}

/// State of a pass through a template.
struct Scan<'a> {
    open: Vec<Tag<'a>>,
    mistakes: Vec<Mistake>,
}

/// Mistake in a template.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    /// Line of the template, from 1.
    pub line: usize,
    /// Mistake, in words for the operator.
    pub message: String,
}

/// Returns all mistakes in the tags of `source`.
pub(super) fn mistakes(source: &str) -> Vec<Mistake> {
    let mut scan = Scan {
        open: Vec::new(),
        mistakes: Vec::new(),
    };
    for tag in tags(source) {
        if scan.take(tag).is_break() {
            break;
        }
    }
    scan.end()
}

impl<'a> Scan<'a> {
    fn report(&mut self, line: usize, message: impl Into<String>) {
        let message = message.into();
        self.mistakes.push(Mistake { line, message });
    }

    /// Checks a tag. Breaks if the tags after it cannot be checked.
    fn take(&mut self, tag: Result<Tag<'a>, usize>) -> ControlFlow<()> {
        let tag = match tag {
            Ok(tag) => tag,
            Err(line) => {
                self.report(line, "a tag is not closed: }} is missing");
                return ControlFlow::Break(());
            }
        };
        match tag.kind {
            '!' => {}
            '>' => self.report(tag.line, "templates cannot include others here"),
            '=' => self.report(tag.line, "the delimiters of tags cannot be changed here"),
            '/' => return self.close(&tag),
            kind => {
                if !NAMES.contains(&tag.name) {
                    self.report(tag.line, unknown(tag.name));
                }
                if matches!(kind, '#' | '^') {
                    self.open.push(tag);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Closes a section. Breaks if another section is open: either of the two may be meant.
    fn close(&mut self, tag: &Tag<'_>) -> ControlFlow<()> {
        let name = tag.name;
        match self.open.pop() {
            Some(section) if section.name == name => ControlFlow::Continue(()),
            Some(Tag {
                name: wanted, line, ..
            }) => {
                let expected =
                    format!("{{{{/{wanted}}}}} is expected, for the section of line {line}");
                self.report(tag.line, format!("{{{{/{name}}}}} where {expected}"));
                self.open.clear();
                ControlFlow::Break(())
            }
            None => {
                let message = format!("{{{{/{name}}}}} closes a section that is not open");
                self.report(tag.line, message);
                ControlFlow::Continue(())
            }
        }
    }

    /// Returns all mistakes by line, with those of sections that are not closed.
    fn end(mut self) -> Vec<Mistake> {
        for section in std::mem::take(&mut self.open) {
            let name = section.name;
            let message = format!("the section {name} is not closed: {{{{/{name}}}}} is missing");
            self.report(section.line, message);
        }
        self.mistakes.sort_by_key(|mistake| mistake.line);
        self.mistakes.truncate(MISTAKES_MAX);
        self.mistakes
    }
}

fn unknown(name: &str) -> String {
    let short: String = name.chars().take(40).collect();
    let same = NAMES
        .iter()
        .find(|known| known.eq_ignore_ascii_case(&name.replace(['_', '-'], "")));
    match same {
        Some(meant) => format!("there is no variable {short:?}; did you mean {meant}?"),
        None => format!("there is no variable {short:?}"),
    }
}

/// Iterates over the tags of a template. The line of a tag without an end is the last item, an
/// error.
fn tags(source: &str) -> impl Iterator<Item = Result<Tag<'_>, usize>> {
    let mut at = 0;
    let mut line = 1;
    std::iter::from_fn(move || {
        let start = at + source.get(at..)?.find("{{")?;
        line += source[at..start].matches('\n').count();
        let is_raw = source[start..].starts_with("{{{");
        let (opening, closing) = if is_raw { (3, "}}}") } else { (2, "}}") };
        let inside = start + opening;
        let Some(length) = source[inside..].find(closing) else {
            at = source.len();
            return Some(Err(line));
        };
        let end = inside + length;
        let text = source[inside..end].trim();
        at = end + closing.len();
        let first = text.chars().next().unwrap_or(' ');
        let (kind, name) = match first {
            '#' | '^' | '/' | '&' | '!' | '>' | '=' if !is_raw => (first, text[1..].trim()),
            _ => (' ', text),
        };
        let tag = Tag { kind, name, line };
        line += source[start..at].matches('\n').count();
        Some(Ok(tag))
    })
}
