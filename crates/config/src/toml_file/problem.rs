//! Mistake in a config, as one line: location, what was found, what is allowed.
//!
//! Text from outside is escaped, shortened and searched for keys before it is shown, because
//! problems end up in logs and issue trackers.

use std::fmt;
use std::sync::Arc;

/// One mistake, or one thing worth a warning.
///
/// Its `Display` is a single line, such as
/// `anteroom.toml:12: room "shop": session_duration: found 5, allowed: a duration from 1s to 24h
/// in quotes; did you mean "5m"?`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// File as the caller named it; empty for flags.
    pub source: Arc<str>,
    /// Line, from 1; `None` for flags.
    pub line: Option<usize>,
    /// Column in characters, from 1; `None` for flags.
    pub column: Option<usize>,
    /// Room or limit that it is about, if its name is known.
    pub owner: Option<Owner>,
    /// The key: `server.listen`, `room[2].name` (rooms and elements are counted from 1), only
    /// `name` where the owner's name is known, `--name` for a flag, empty for a syntax error.
    pub key: String,
    /// Finding at the location.
    pub finding: Finding,
    /// Description of what is allowed; empty if the finding contains it.
    pub allowed: String,
    /// Advice for the reader, if a guess is possible.
    pub hint: Option<String>,
}

impl Problem {
    /// Returns a remark about a key that is in no file.
    #[must_use]
    pub fn remark(owner: Owner, key: &str, text: &str) -> Self {
        Self {
            source: "".into(),
            line: None,
            column: None,
            owner: Some(owner),
            key: key.to_owned(),
            finding: Finding::Remark(text.to_owned()),
            allowed: String::new(),
            hint: None,
        }
    }
}

/// One of several tables of a kind, by its name.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Owner {
    /// A `[[room]]`.
    Room(String),
    /// A `[[limit]]`.
    Limit(String),
    /// A `[[site]]`.
    Site(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(name) => write!(f, "room \"{name}\""),
            Self::Limit(name) => write!(f, "limit \"{name}\""),
            Self::Site(name) => write!(f, "site \"{name}\""),
        }
    }
}

/// Finding: what is there instead of an allowed value.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// The file is not TOML; the message of the parser.
    Syntax(String),
    /// A value that is not allowed, fit to be shown.
    Value(String),
    /// A key that is not known.
    UnknownKey,
    /// A required key or table is missing.
    Missing,
    /// A value that is allowed, but not in this context; as text.
    Remark(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(message) => write!(f, "syntax error: {message}"),
            Self::Value(value) => write!(f, "found {value}"),
            Self::UnknownKey => f.write_str("unknown key"),
            Self::Missing => f.write_str("missing"),
            Self::Remark(remark) => f.write_str(remark),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.source.is_empty() {
            write!(f, "{}:", printable(&self.source))?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        if let Some(owner) = &self.owner {
            write!(f, "{owner}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}", self.finding)?;
        if !self.allowed.is_empty() {
            write!(f, ", allowed: {}", self.allowed)?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

/// All mistakes of one configuration, in the order of the file; never empty.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Problems(pub Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

/// Longest piece of outside text that a problem shows, in characters. A longer value is recognised
/// by its beginning.
const SHOWN_CHARS_MAX: usize = 80;

/// Shortest run of base64 characters that is treated as a key. A key of 32 bytes takes 43; one that
/// lost a few characters is still most of a secret.
const KEY_CHARS_MIN: usize = 32;

/// Quotes outside text for a message: one line, bounded, without keys.
#[must_use]
pub fn quoted(text: &str) -> String {
    if may_hold_key(text) || may_hold_password(text) {
        return hidden(text);
    }
    let mut short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// Returns the name of a key from outside: without quotes where TOML needs none.
#[must_use]
pub fn key_name(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= SHOWN_CHARS_MAX && name.chars().all(is_bare) {
        if may_hold_key(name) {
            return "(a key that is not shown)".to_owned();
        }
        return name.to_owned();
    }
    quoted(name)
}

/// Returns a replacement for text that must not be shown.
#[must_use]
pub fn hidden(text: &str) -> String {
    format!(
        "a text of {} characters (not shown, it may be secret)",
        text.chars().count()
    )
}

/// Escapes text from outside so that it stays on one line.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || is_line_break(c) {
                ' '
            } else {
                c
            }
        })
        .collect()
}

const fn is_line_break(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether a run of base64 characters is long enough for a key and looks random: upper case, lower
/// case and digits together. Paths and host names rarely do; 999 of 1000 real keys do.
#[must_use]
pub fn may_hold_key(text: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_' | '=')))
        .any(|run| {
            run.len() >= KEY_CHARS_MIN
                && run.bytes().any(|b| b.is_ascii_uppercase())
                && run.bytes().any(|b| b.is_ascii_lowercase())
                && run.bytes().any(|b| b.is_ascii_digit())
        })
}

/// Whether the text looks like a URL with credentials.
fn may_hold_password(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(_, rest)| rest.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "q7TzN0mK2xVbYw8rLh5uJc1eAo9sGd3fPi6kRt4nXyE=";

    #[test]
    fn outside_text_is_escaped_and_shortened_and_shows_no_key() {
        assert_eq!(quoted("a\n\"b\u{2028}"), r#""a\n\"b\u{2028}""#);
        assert_eq!(quoted(&"x".repeat(200)).chars().count(), 80 + 1 + 2);
        assert!(!quoted(&format!("Bearer {KEY}")).contains("q7Tz"));
        assert!(!key_name(KEY.trim_end_matches('=')).contains("q7Tz"));
        assert!(!quoted("redis://me:s3cret@a").contains("s3cret"));
        assert!(!key_name("redis://me:s3cret@a").contains("s3cret"));
        assert_eq!(quoted("me@a"), "\"me@a\"");
        assert_eq!(key_name("sesion_duration"), "sesion_duration");
        assert_eq!(key_name("a b"), "\"a b\"");
        let path = "/black-friday/electronics/phones-and-tablets/page";
        assert_eq!(quoted(path), format!("{path:?}"));
    }

    #[test]
    fn a_problem_is_one_line_for_any_file_name() {
        let problem = Problem {
            source: Arc::from("a\nb.toml"),
            line: Some(3),
            column: Some(1),
            owner: Some(Owner::Room("shop".to_owned())),
            key: "name".to_owned(),
            finding: Finding::Missing,
            allowed: "a name".to_owned(),
            hint: Some("give it one".to_owned()),
        };
        assert_eq!(
            problem.to_string(),
            "a b.toml:3: room \"shop\": name: missing, allowed: a name; give it one"
        );
    }
}
