//! A TOML text as a tree, with single values set over it: `room.shop.draw=true`.
//!
//! The meaning of keys is not known here. The same code reads a value that was set and one that
//! was typed into the file, so its mistakes are reported in the same words.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::depth;
use super::notes::Notes;
use super::problem::{Finding, Problems, quoted};
use super::reader::Table;
use super::source::Source;

/// A TOML file other than the gateway's config file.
pub struct Document<'t> {
    notes: Notes,
    root: DeTable<'t>,
}

impl<'t> Document<'t> {
    /// Parses TOML. Messages call it `source_name`.
    ///
    /// # Errors
    ///
    /// [`Problems`] with one problem if it is not TOML: the rest cannot be read then.
    pub fn parse(source_name: &str, text: &'t str) -> Result<Self, Problems> {
        let source = Source::new(source_name, text);
        let mut notes = Notes::new(Some(source));
        match parse(&mut notes, text) {
            Some(root) => Ok(Self { notes, root }),
            None => Err(Problems(notes.problems)),
        }
    }

    /// Sets the value at `path`, such as `room.shop.draw` or `fault[2].at`, and replaces what is
    /// there. A value that is not TOML is text, so that `5m` needs no quotes. Messages about it
    /// begin with `source_name` instead of the file and a line.
    ///
    /// Missing tables on the way are created; elements of a list are not. [`Self::read`] reports
    /// mistakes.
    pub fn set(&mut self, source_name: &str, path: &str, value: &'t str) {
        let offset = self.notes.add_source(source_name);
        let value = match (depth::find_too_deep(value), DeValue::parse(value)) {
            (None, Ok(value)) => move_to(offset, value),
            _ => Spanned::new(offset..offset, DeValue::String(Cow::Borrowed(value))),
        };
        if let Err(remark) = put(&mut self.root, path, value, offset) {
            let location = self.notes.location(offset, None, String::new());
            self.notes
                .report(&location, Finding::Remark(remark), "", None);
        }
    }

    /// Reads the file from its root with `read`.
    ///
    /// # Errors
    ///
    /// [`Problems`] with every mistake, in the order of the file.
    pub fn read<T>(mut self, read: impl FnOnce(Table<'_>) -> Option<T>) -> Result<T, Problems> {
        let value = read(Table::root(&mut self.notes, &self.root));
        let problems = self.notes.into_problems_in_order();
        match value {
            Some(value) if problems.is_empty() => Ok(value),
            _ => Err(Problems(problems)),
        }
    }
}

/// Parses a text; `None` after reporting why it is not TOML.
#[must_use]
pub fn parse<'t>(notes: &mut Notes, text: &'t str) -> Option<DeTable<'t>> {
    if let Some(offset) = depth::find_too_deep(text) {
        notes.report_syntax("a key of too many segments", offset);
        return None;
    }
    match DeTable::parse(text) {
        Ok(document) => Some(document.into_inner()),
        Err(error) => {
            let span = error.span().unwrap_or(text.len()..text.len());
            let message = match text.get(span.clone()) {
                Some(key) if error.message() == "duplicate key" => {
                    format!("the key {} is here twice", quoted(key))
                }
                _ => error.message().to_owned(),
            };
            notes.report_syntax(&message, span.start);
            None
        }
    }
}

/// Sets the offset of a value and of everything in it. Recursion is as deep as the parser allows.
fn move_to(offset: usize, value: Spanned<DeValue<'_>>) -> Spanned<DeValue<'_>> {
    let moved = match value.into_inner() {
        DeValue::Array(list) => {
            let list = list.into_iter().map(|element| move_to(offset, element));
            DeValue::Array(list.collect::<DeArray<'_>>())
        }
        DeValue::Table(table) => {
            let entries = table.into_iter().map(|(key, value)| {
                let key = Spanned::new(offset..offset, key.into_inner());
                (key, move_to(offset, value))
            });
            DeValue::Table(entries.collect())
        }
        plain => plain,
    };
    Spanned::new(offset..offset, moved)
}

/// Step of a path: a key, then indices of list elements, counted from 1.
struct Step<'p> {
    key: &'p str,
    indices: Vec<usize>,
}

/// Longest path; ours have five steps, and every step is a nested table.
const STEPS_MAX: usize = 16;

fn steps(path: &str) -> Result<Vec<Step<'_>>, String> {
    let malformed = || {
        format!(
            "{} is not a path of keys, such as room.shop.draw or fault[2].at",
            quoted(path)
        )
    };
    let mut steps = Vec::new();
    for text in path.split('.') {
        let (key, rest) = match text.find('[') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let mut indices = Vec::new();
        for piece in rest.split_inclusive(']') {
            let digits = piece
                .strip_prefix('[')
                .and_then(|piece| piece.strip_suffix(']'));
            let index = digits.and_then(|digits| digits.parse().ok());
            indices.push(index.filter(|index| *index > 0).ok_or_else(malformed)?);
        }
        let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if key.is_empty() || !key.chars().all(is_bare) {
            return Err(malformed());
        }
        steps.push(Step { key, indices });
    }
    if steps.len() > STEPS_MAX {
        return Err(malformed());
    }
    Ok(steps)
}

fn put<'t>(
    root: &mut DeTable<'t>,
    path: &str,
    value: Spanned<DeValue<'t>>,
    offset: usize,
) -> Result<(), String> {
    let steps = steps(path)?;
    let Some((last, way)) = steps.split_last() else {
        return Ok(());
    };
    let mut table = root;
    let mut walked = String::new();
    for step in way {
        walked.push_str(step.key);
        if !table.contains_key(step.key) && step.indices.is_empty() {
            let empty = Spanned::new(offset..offset, DeValue::Table(DeTable::new()));
            table.insert(key_at(offset, step.key), empty);
        }
        let inner = find(table, step, &mut walked)?;
        table = match inner.get_mut() {
            DeValue::Table(inner) => inner,
            DeValue::Array(list) => {
                let count = list.len();
                return Err(format!(
                    "{walked} is a list of {count}; write an index, from {walked}[1]"
                ));
            }
            _ => return Err(format!("{walked} has no keys in it")),
        };
        walked.push('.');
    }
    walked.push_str(last.key);
    if last.indices.is_empty() {
        // The key moves as well: its offset is now that of its value.
        table.remove(last.key);
        table.insert(key_at(offset, last.key), value);
    } else {
        *find(table, last, &mut walked)? = value;
    }
    Ok(())
}

fn key_at<'t>(offset: usize, key: &str) -> Spanned<Cow<'t, str>> {
    Spanned::new(offset..offset, Cow::Owned(key.to_owned()))
}

fn find<'a, 't>(
    table: &'a mut DeTable<'t>,
    step: &Step<'_>,
    walked: &mut String,
) -> Result<&'a mut Spanned<DeValue<'t>>, String> {
    let missing = |walked: &str| format!("there is no {walked}");
    let mut value = table.get_mut(step.key).ok_or_else(|| missing(walked))?;
    for index in &step.indices {
        let DeValue::Array(list) = value.get_mut() else {
            return Err(format!("{walked} is not a list"));
        };
        let count = list.len();
        value = list
            .get_mut(index - 1)
            .ok_or_else(|| format!("there is no {walked}[{index}]: the list has {count}"))?;
        walked.push_str(&format!("[{index}]"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[t]\nb = 2\nlist = [1, 2]\n[[x]]\ny = 1\n[[x]]\ny = 2\n";

    fn problems_of(settings: &[(&str, &str)]) -> String {
        let mut document = Document::parse("f.toml", TEXT).unwrap();
        for (path, value) in settings {
            document.set("--set", path, value);
        }
        // No key is read, so each is reported with its location.
        match document.read(|table| {
            table.finish();
            Some(())
        }) {
            Ok(()) => String::new(),
            Err(problems) => problems.to_string(),
        }
    }

    fn value(path: &str, value: &str) -> String {
        let mut document = Document::parse("f.toml", TEXT).unwrap();
        document.set("--set", path, value);
        assert!(document.notes.problems.is_empty());
        format!("{:?}", document.root)
    }

    #[test]
    fn a_problem_of_a_set_value_names_its_source() {
        let all = problems_of(&[("a", "3"), ("new.key", "true")]);
        assert!(all.contains("--set: a: unknown key"), "{all}");
        assert!(all.contains("--set: new: unknown key"), "{all}");
        assert!(all.contains("f.toml:2: t: unknown key"), "{all}");
        assert!(!all.contains("f.toml:1:"), "{all}");
    }

    #[test]
    fn a_set_value_that_is_not_toml_is_text() {
        assert!(value("t.b", "5m").contains("String(\"5m\")"));
        assert!(value("t.b", "\"5m\"").contains("String(\"5m\")"));
        assert!(value("t.b", "[\"1ms\", \"2ms\"]").contains("String(\"2ms\")"));
        assert!(value("x[2].y", "77").contains("77"));
        assert!(value("t.list[1]", "88").contains("88"));
        let deep = format!("{{ {}a = 1 }}", "a.".repeat(100_000));
        assert!(value("a", &deep).contains("String("));
    }

    #[test]
    fn an_invalid_path_is_reported() {
        let check = |path: &str, expected: &str| {
            let all = problems_of(&[(path, "1")]);
            assert!(all.contains(&format!("--set: {expected}")), "{path}: {all}");
        };
        check("x.y", "x is a list of 2; write an index, from x[1]");
        check("x[3].y", "there is no x[3]: the list has 2");
        check("t.z[1].y", "there is no t.z");
        check("t[1].y", "t is not a list");
        check("a.b", "a has no keys in it");
        for path in ["", ".", "a..b", "a[", "a[0]", "a[x]", "a]", "a[1]b", "a b"] {
            check(path, &format!("{path:?} is not a path of keys"));
        }
        check(&"a.".repeat(17), "\"a.a.");
    }
}
