//! What is wrong with the tags of a template, and in which line? The template engine says the one, and
//! not the other.

use super::Mistake;
use super::variables;

/// Mistakes of one template that are told; whoever has more has one cause for many.
const MISTAKES_MAX: usize = 20;

/// A tag: what stands in its first place, its name, its line.
struct Tag<'a> {
    kind: char,
    name: &'a str,
    line: usize,
}

/// Everything that is wrong with the tags of `source`.
pub(super) fn mistakes(source: &str) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut open: Vec<Tag<'_>> = Vec::new();
    let known = variables::names();
    let mut tell = |line, message: String| mistakes.push(Mistake { line, message });
    for tag in tags(source) {
        let tag = match tag {
            Ok(tag) => tag,
            Err(line) => {
                tell(line, "a tag is not closed: }} is missing".to_owned());
                break;
            }
        };
        match tag.kind {
            '!' => {}
            '>' => tell(tag.line, "templates cannot include others here".to_owned()),
            '=' => tell(
                tag.line,
                "the marks of tags cannot be changed here".to_owned(),
            ),
            '/' => match open.pop() {
                Some(section) if section.name == tag.name => {}
                Some(section) => {
                    let (name, line, wanted) = (tag.name, section.line, section.name);
                    tell(
                        tag.line,
                        format!(
                            "{{{{/{name}}}}} where {{{{/{wanted}}}}} is expected, for the section of line {line}"
                        ),
                    );
                    open.clear();
                    break;
                }
                None => {
                    let name = tag.name;
                    tell(
                        tag.line,
                        format!("{{{{/{name}}}}} closes a section that is not open"),
                    );
                }
            },
            kind => {
                if !known.iter().any(|name| name == tag.name) {
                    tell(tag.line, unknown(tag.name, &known));
                }
                if matches!(kind, '#' | '^') {
                    open.push(tag);
                }
            }
        }
    }
    for section in open {
        let name = section.name;
        tell(
            section.line,
            format!("the section {name} is not closed: {{{{/{name}}}}} is missing"),
        );
    }
    mistakes.sort_by_key(|mistake| mistake.line);
    mistakes.truncate(MISTAKES_MAX);
    mistakes
}

fn unknown(name: &str, known: &[String]) -> String {
    let short: String = name.chars().take(40).collect();
    let same = known
        .iter()
        .find(|known| known.eq_ignore_ascii_case(&name.replace(['_', '-'], "")));
    match same {
        Some(meant) => format!("there is no variable {short:?}; did you mean {meant}?"),
        None => format!("there is no variable {short:?}"),
    }
}

/// The tags of a template in their order; an error is the line of one without an end, the last.
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
