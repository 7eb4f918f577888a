//! Check of a template's tags. The template engine finds mistakes as well, but without their lines.

use std::ops::{ControlFlow, Range};

use super::MISTAKES_MAX;
use super::variables::{IN_SCRIPT, NAMES, SCRIPT};

/// Tag of a template.
pub(super) struct Tag<'a> {
    /// First character: `{` for three braces, a blank for a plain name.
    kind: char,
    name: &'a str,
    line: usize,
    /// Bytes of the whole tag, and of what is between its braces.
    pub(super) range: Range<usize>,
    inside: Range<usize>,
    is_in_script: bool,
}

/// State of a pass through a template.
struct Scan<'a> {
    open: Vec<Tag<'a>>,
    has_script: bool,
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
        has_script: false,
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
                if tag.name == SCRIPT {
                    self.take_script(&tag);
                }
                if matches!(kind, '#' | '^') {
                    self.open.push(tag);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Checks the tag of the page's script. Every page must have the script or none, because the
    /// headers depend on it.
    fn take_script(&mut self, tag: &Tag<'_>) {
        if !matches!(tag.kind, '{' | '&') {
            self.report(
                tag.line,
                format!("{SCRIPT} needs three braces: {{{{{{{SCRIPT}}}}}}}"),
            );
        } else if !self.open.is_empty() {
            self.report(tag.line, format!("{SCRIPT} cannot be in a section"));
        } else if tag.is_in_script {
            self.report(
                tag.line,
                format!("{SCRIPT} cannot be in a script: it is one"),
            );
        } else if self.has_script {
            self.report(tag.line, format!("{SCRIPT} is here a second time"));
        }
        self.has_script = true;
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

/// Whether a template has the page's script.
pub(super) fn has_script(source: &str) -> bool {
    tags(source).flatten().any(|tag| tag.name == SCRIPT)
}

/// Marks the variables in scripts, where an unknown number must be a value: `{{position}}` becomes
/// `{{position?}}` there.
pub(super) fn with_marked_scripts(source: &str) -> String {
    let mut marked = String::with_capacity(source.len());
    let mut from = 0;
    let values = tags(source).flatten();
    for tag in values.filter(|tag| tag.is_in_script && matches!(tag.kind, ' ' | '{' | '&')) {
        marked.push_str(&source[from..tag.inside.start]);
        if tag.kind == '&' {
            marked.push('&');
        }
        marked.push_str(tag.name);
        marked.push(IN_SCRIPT);
        from = tag.inside.end;
    }
    marked.push_str(&source[from..]);
    marked
}

/// Iterates over the tags of a template. The line of a tag without an end is the last item, an
/// error.
pub(super) fn tags(source: &str) -> impl Iterator<Item = Result<Tag<'_>, usize>> {
    let mut at = 0;
    let mut line = 1;
    let mut is_in_script = false;
    std::iter::from_fn(move || {
        let start = at + source.get(at..)?.find("{{")?;
        let text = &source[at..start];
        line += text.matches('\n').count();
        is_in_script = ends_in_script(text, is_in_script);
        let is_raw = source[start..].starts_with("{{{");
        let (opening, closing) = if is_raw { (3, "}}}") } else { (2, "}}") };
        let inside = start + opening;
        let Some(length) = source[inside..].find(closing) else {
            at = source.len();
            return Some(Err(line));
        };
        let inside = inside..inside + length;
        let text = source[inside.clone()].trim();
        at = inside.end + closing.len();
        let first = text.chars().next().unwrap_or(' ');
        let (kind, name) = match first {
            _ if is_raw => ('{', text),
            '#' | '^' | '/' | '&' | '!' | '>' | '=' => (first, text[1..].trim()),
            _ => (' ', text),
        };
        let tag = Tag {
            kind,
            name,
            line,
            range: start..at,
            inside,
            is_in_script,
        };
        line += source[start..at].matches('\n').count();
        Some(Ok(tag))
    })
}

/// Whether a script is open at the end of a piece of HTML.
fn ends_in_script(html: &str, is_open_before: bool) -> bool {
    let html = html.to_ascii_lowercase();
    match (html.rfind("<script"), html.rfind("</script")) {
        (None, None) => is_open_before,
        (opened, closed) => opened > closed,
    }
}
