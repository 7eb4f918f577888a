//! What is wrong, where, and what would be right? One line per mistake.
//!
//! Everything that came from outside is escaped, shortened and searched for what looks like a key
//! before it is shown: problems end up in logs and tickets.

use std::fmt;
use std::sync::Arc;

/// One mistake, or one thing worth a warning.
///
/// Its `Display` is a single line, such as
/// `anteroom.toml:12: room "shop": session_duration: found 5, allowed: a duration from 1s to 24h
/// in quotes; did you mean "5m"?`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The file as the caller named it; empty for flags.
    pub source: Arc<str>,
    /// Line, from 1; `None` for flags.
    pub line: Option<usize>,
    /// Column in characters, from 1; `None` for flags.
    pub column: Option<usize>,
    /// The room or limit that it is about, where its name is known.
    pub owner: Option<Owner>,
    /// The key: `server.listen`, `room[2].name` (rooms and elements are counted from 1), only
    /// `name` where the owner's name is known, `--name` for a flag, empty for a syntax error.
    pub key: String,
    /// What is there.
    pub finding: Finding,
    /// What may be there; empty where the finding says it all.
    pub allowed: String,
    /// What to do about it, if we can guess.
    pub hint: Option<String>,
}

impl Problem {
    /// One thing to say about a key that was typed into no file.
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

/// Which of several tables of one kind, by its name.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Owner {
    /// A `[[room]]`.
    Room(String),
    /// A `[[limit]]`.
    Limit(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(name) => write!(f, "room \"{name}\""),
            Self::Limit(name) => write!(f, "limit \"{name}\""),
        }
    }
}

/// What is there instead of what should be.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// The file is no TOML; what the parser said.
    Syntax(String),
    /// A value that is not allowed, fit to be shown.
    Value(String),
    /// A key that nobody asked for.
    UnknownKey,
    /// Nothing, where something is required.
    Missing,
    /// Allowed as such, but not as things stand; in words.
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

/// Every mistake of one configuration, in the order of the file; never empty.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Problems(pub Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

/// Longest piece of outside text that a problem shows, in characters. A value that fits is
/// recognised at once; a longer one is recognised by its beginning.
const SHOWN_CHARS_MAX: usize = 80;

/// Shortest run of base64 characters that is searched for a key: 32 bytes take 43 of them, and a
/// key that lost a few on the way is still most of a secret.
const KEY_CHARS_MIN: usize = 32;

/// Quotes outside text for a message: one line, bounded, and no key in it.
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

/// The name of a key from outside: bare where TOML would take it bare.
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

/// Stands for text that must not be shown.
#[must_use]
pub fn hidden(text: &str) -> String {
    format!(
        "a text of {} characters (not shown, it may be secret)",
        text.chars().count()
    )
}

/// Text from outside without anything that would leave the line.
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

/// Whether some run of base64 characters is long enough for a key and looks drawn at random:
/// upper case, lower case and digits together. Paths and host names rarely do; of the real keys
/// all but one in a thousand do.
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

/// Whether the text looks like a URL with credentials, under whatever key it was typed.
fn may_hold_password(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(_, rest)| rest.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "q7TzN0mK2xVbYw8rLh5uJc1eAo9sGd3fPi6kRt4nXyE=";

    #[test]
    fn outside_text_is_escaped_shortened_and_never_a_key() {
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
    fn a_problem_is_one_line_whatever_the_file_is_called() {
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
