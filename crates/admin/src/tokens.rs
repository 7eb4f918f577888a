//! Who may change rooms? Whoever shows one of these tokens.
//!
//! Only digests are kept, and all of them are compared in the same time whatever was shown. Where
//! tokens come from (a file, a generated one) is up to whoever starts the process.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};

/// Shortest token: what somebody makes up is shorter, and can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 64;
/// Most tokens: all of them are compared each time.
const TOKENS_MAX: usize = 100;
/// What a token is called that has no name.
const UNNAMED: &str = "operator";

/// Tokens that hold at present. Without any nobody may change anything.
#[derive(Default)]
pub struct Tokens(RwLock<Vec<Token>>);

/// A token; its `Debug` shows its name.
#[derive(Clone)]
pub struct Token {
    name: String,
    digest: Digest,
}

/// Why a file holds no tokens.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// There is none.
    #[error("there is no token; each line holds one, with a name before it or without")]
    None,
    /// There are too many.
    #[error("there are more than {TOKENS_MAX} tokens")]
    TooMany,
    /// A line is no token.
    #[error(
        "line {line}: a token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} visible ASCII \
         characters, such \
         as `openssl rand -hex 32` prints, and a name before it 1 to {NAME_BYTES_MAX}"
    )]
    Line {
        /// Which, from 1.
        line: usize,
    },
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.name)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokens").field(&self.list()).finish()
    }
}

impl Token {
    /// A token of this name.
    #[must_use]
    pub fn new(name: &str, token: &str) -> Self {
        Self {
            name: name.to_owned(),
            digest: digest(&SHA256, token.as_bytes()),
        }
    }

    /// The tokens of a file: `name token` or a token alone on each line; `#` begins a comment.
    ///
    /// # Errors
    ///
    /// [`TokenError`]; it shows nothing of what the file holds.
    pub fn parse(text: &str) -> Result<Vec<Self>, TokenError> {
        let token = |(text, line)| {
            let (name, token) = words(text).ok_or(TokenError::Line { line })?;
            Ok(Self::new(name, token))
        };
        let tokens: Result<Vec<Self>, TokenError> = lines(text).map(token).collect();
        let tokens = tokens?;
        match tokens.len() {
            0 => Err(TokenError::None),
            1..=TOKENS_MAX => Ok(tokens),
            _ => Err(TokenError::TooMany),
        }
    }

    /// The first token of such a file, for whoever shows it.
    ///
    /// # Errors
    ///
    /// As [`Token::parse`].
    pub fn first_in(text: &str) -> Result<&str, TokenError> {
        let mut lines = lines(text);
        let (text, line) = lines.next().ok_or(TokenError::None)?;
        let (_, token) = words(text).ok_or(TokenError::Line { line })?;
        Ok(token)
    }
}

/// What each line says that says something, and which it is, from 1.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let lines = text.lines().map(str::trim).zip(1..);
    lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
}

/// The name and the token that a line holds.
fn words(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (name, token) = match (words.next(), words.next(), words.next()) {
        (Some(token), None, _) => (UNNAMED, token),
        (Some(name), Some(token), None) => (name, token),
        _ => return None,
    };
    let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_token = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len());
    (is_token && is_visible(token) && is_visible(name) && name.len() <= NAME_BYTES_MAX)
        .then_some((name, token))
}

impl Tokens {
    /// These tokens hold.
    #[must_use]
    pub fn new(tokens: Vec<Token>) -> Self {
        Self(RwLock::new(tokens))
    }

    /// From now on these hold.
    pub fn set(&self, tokens: Vec<Token>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// The name of the token that was shown, if it holds.
    #[must_use]
    pub fn name_of(&self, shown: &str) -> Option<String> {
        let shown = digest(&SHA256, shown.as_bytes());
        let mut found = None;
        // To the end, whichever it is.
        for token in self.list() {
            if verify_slices_are_equal(token.digest.as_ref(), shown.as_ref()).is_ok() {
                found = Some(token.name);
            }
        }
        found
    }

    fn list(&self) -> Vec<Token> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tokens.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_name_and_nothing_else_is_known() {
        let text = "# of the shop\n\nalice  aaaaaaaaaaaaaaaa\n bbbbbbbbbbbbbbbbb\r\n";
        let tokens = Tokens::new(Token::parse(text).unwrap());
        let check = |shown: &str, expected: Option<&str>| {
            assert_eq!(tokens.name_of(shown).as_deref(), expected, "{shown}");
        };
        check("aaaaaaaaaaaaaaaa", Some("alice"));
        check("bbbbbbbbbbbbbbbbb", Some("operator"));
        for wrong in [
            "",
            "aaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaa",
            "alice",
            " ",
            "AAAAAAAAAAAAAAAA",
        ] {
            check(wrong, None);
        }
        assert_eq!(
            format!("{tokens:?}"),
            "Tokens([Token(alice), Token(operator)])"
        );
        tokens.set(vec![Token::new("bob", "cccccccccccccccc")]);
        check("aaaaaaaaaaaaaaaa", None);
        check("cccccccccccccccc", Some("bob"));
        assert_eq!(Tokens::default().name_of(""), None);
    }

    #[test]
    fn whoever_shows_a_token_reads_the_file_as_its_judge_does() {
        let text = "# of the shop\n\nalice  aaaaaaaaaaaaaaaa\n bbbbbbbbbbbbbbbbb\r\n";
        assert_eq!(Token::first_in(text), Ok("aaaaaaaaaaaaaaaa"));
        assert_eq!(Token::first_in("# nothing\n"), Err(TokenError::None));
        let short = Token::first_in("\nshort\n");
        assert_eq!(short, Err(TokenError::Line { line: 2 }));
    }

    #[test]
    fn an_invalid_token_is_named_by_its_line_and_not_its_content() {
        let check = |text: &str, expected: TokenError| {
            let error = Token::parse(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("secret"));
        };
        check("", TokenError::None);
        check("# only a comment", TokenError::None);
        check("aaaaaaaaaaaaaaaa\nsecret", TokenError::Line { line: 2 });
        check("a secret aaaaaaaaaaaaaaaa", TokenError::Line { line: 1 });
        check("secret-secret-\u{e9}\u{e9}", TokenError::Line { line: 1 });
        check(&"s".repeat(257), TokenError::Line { line: 1 });
        check(&"aaaaaaaaaaaaaaaa\n".repeat(101), TokenError::TooMany);
    }
}
