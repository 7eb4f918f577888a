//! Tokens of operators, and what each of them allows.
//!
//! Only digests are kept, and all of them are compared in constant time. The program that starts
//! the server provides the tokens: from a file, or a generated one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};

/// Minimum length of a token: shorter ones, as people make them up, can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 64;
/// Maximum number of tokens: all of them are compared each time.
const TOKENS_MAX: usize = 100;
/// Name of a token without a name.
const UNNAMED: &str = "operator";

/// Tokens that are valid at present. Without any, nobody may change anything.
#[derive(Default)]
pub struct Tokens(RwLock<Vec<Token>>);

/// Role of a token. Each one allows what those before it allow.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Sets values, pauses and opens rooms, sets messages and overrides of limits, finds visitors.
    Operator,
    /// Does everything.
    #[default]
    Admin,
}

impl Role {
    /// All roles, from the least to the most.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// Returns the word for the role in a file of tokens.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }
}

/// Token; its `Debug` shows its name and its role.
#[derive(Clone)]
pub struct Token {
    holder: Holder,
    digest: Digest,
}

/// Name and role of a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    /// Name, for the audit log.
    pub name: String,
    /// Role.
    pub role: Role,
}

/// Error of a file of tokens.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file has no token.
    #[error("there is no token; each line holds one, with a name before it or without")]
    None,
    /// The file has too many tokens.
    #[error("there are more than {TOKENS_MAX} tokens")]
    TooMany,
    /// A line is not a token.
    #[error(
        "line {line}: a line is a token, a name and a token, or a name, a token and a role; a \
         token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} visible ASCII characters, and a name 1 \
         to {NAME_BYTES_MAX}; `openssl rand -hex 32` prints a token"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// A line has the token of an earlier one, whose name and role it would change.
    #[error("line {line}: the token of line {first} again; each line needs a token of its own")]
    Twice {
        /// Number of the line, from 1.
        line: usize,
        /// Number of the earlier line.
        first: usize,
    },
    /// A line ends with a word that is no role.
    #[error("line {line}: after the token may stand its role: viewer, operator or admin")]
    Role {
        /// Number of the line, from 1.
        line: usize,
    },
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Token({}, {})",
            self.holder.name,
            self.holder.role.word()
        )
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokens").field(&self.list()).finish()
    }
}

impl Token {
    /// Creates a token with a name, for everything.
    #[must_use]
    pub fn new(name: &str, token: &str) -> Self {
        Self::with_role(name, token, Role::default())
    }

    /// Creates a token with a name and a role.
    #[must_use]
    pub fn with_role(name: &str, token: &str, role: Role) -> Self {
        let name = name.to_owned();
        Self {
            holder: Holder { name, role },
            digest: digest(&SHA256, token.as_bytes()),
        }
    }

    /// Parses the tokens of a file: `name token`, `name token role` or a token alone on each line;
    /// `#` begins a comment. Without a role, a token is for everything.
    ///
    /// # Errors
    ///
    /// [`TokenError`]; it never shows the content of the file.
    pub fn parse(text: &str) -> Result<Vec<Self>, TokenError> {
        let mut tokens = Vec::new();
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (text, line) in lines(text) {
            let words = Words::of(text, line)?;
            if let Some(first) = seen.insert(words.token, line) {
                return Err(TokenError::Twice { line, first });
            }
            tokens.push(Self::with_role(words.name, words.token, words.role));
        }
        match tokens.len() {
            0 => Err(TokenError::None),
            1..=TOKENS_MAX => Ok(tokens),
            _ => Err(TokenError::TooMany),
        }
    }

    /// Returns the first token of such a file in clear text, for a client that sends it.
    ///
    /// # Errors
    ///
    /// The same as [`Token::parse`].
    pub fn first_in(text: &str) -> Result<&str, TokenError> {
        let mut lines = lines(text);
        let (text, line) = lines.next().ok_or(TokenError::None)?;
        Ok(Words::of(text, line)?.token)
    }
}

/// Returns the lines with content, and their numbers from 1.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    // Editors of some systems put a mark there.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().map(str::trim).zip(1..);
    lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
}

/// Words of a line.
struct Words<'a> {
    name: &'a str,
    token: &'a str,
    role: Role,
}

impl<'a> Words<'a> {
    fn of(text: &'a str, line: usize) -> Result<Self, TokenError> {
        let words: Vec<&str> = text.split_ascii_whitespace().take(4).collect();
        let (name, token, role) = match *words {
            [token] => (UNNAMED, token, None),
            [name, token] => (name, token, None),
            [name, token, role] => (name, token, Some(role)),
            _ => return Err(TokenError::Line { line }),
        };
        let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_token = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len());
        if !is_token || !is_visible(token) || !is_visible(name) || name.len() > NAME_BYTES_MAX {
            return Err(TokenError::Line { line });
        }
        let role = match role {
            None => Role::default(),
            Some(word) => Role::parse(word).ok_or(TokenError::Role { line })?,
        };
        Ok(Self { name, token, role })
    }
}

impl Tokens {
    /// Creates a set of valid tokens.
    #[must_use]
    pub fn new(tokens: Vec<Token>) -> Self {
        Self(RwLock::new(tokens))
    }

    /// Replaces all tokens.
    pub fn set(&self, tokens: Vec<Token>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Returns the name and the role of a token, if it is valid.
    #[must_use]
    pub fn holder_of(&self, shown: &str) -> Option<Holder> {
        let shown = digest(&SHA256, shown.as_bytes());
        let mut found = None;
        // No early return, so that the time does not show which token matched.
        for token in self.list() {
            if verify_slices_are_equal(token.digest.as_ref(), shown.as_ref()).is_ok() {
                found = Some(token.holder);
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
    fn only_valid_tokens_have_a_name() {
        let text = "# of the shop\n\nalice  aaaaaaaaaaaaaaaa\n bbbbbbbbbbbbbbbbb\r\n";
        let tokens = Tokens::new(Token::parse(text).unwrap());
        let check = |shown: &str, expected: Option<&str>| {
            let found = tokens.holder_of(shown).map(|holder| holder.name);
            assert_eq!(found.as_deref(), expected, "{shown}");
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
            "Tokens([Token(alice, admin), Token(operator, admin)])"
        );
        tokens.set(vec![Token::new("bob", "cccccccccccccccc")]);
        check("aaaaaaaaaaaaaaaa", None);
        check("cccccccccccccccc", Some("bob"));
        assert_eq!(Tokens::default().holder_of(""), None);
    }

    #[test]
    fn a_token_has_the_role_behind_it_or_is_for_everything() {
        let text = "eve aaaaaaaaaaaaaaaa viewer\nbob bbbbbbbbbbbbbbbb operator\n\
                    ada cccccccccccccccc admin\njoe dddddddddddddddd\n";
        let tokens = Tokens::new(Token::parse(text).unwrap());
        let role = |letter: &str| tokens.holder_of(&letter.repeat(16)).unwrap().role;
        let roles = ["a", "b", "c", "d"].map(role);
        let expected = [Role::Viewer, Role::Operator, Role::Admin, Role::Admin];
        assert_eq!(roles, expected);
        assert!(Role::ALL.is_sorted());
    }

    #[test]
    fn a_client_reads_the_first_token_of_the_same_file() {
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
        check("a aaaaaaaaaaaaaaaa secret", TokenError::Role { line: 1 });
        check("a aaaaaaaaaaaaaaaa Viewer", TokenError::Role { line: 1 });
        check("a aaaaaaaaaaaaaaaa admin x", TokenError::Line { line: 1 });
        check("secret-secret-\u{e9}\u{e9}", TokenError::Line { line: 1 });
        check(&"s".repeat(257), TokenError::Line { line: 1 });
        let many: String = (0..101).map(|n| format!("aaaaaaaaaaaaa{n:03}\n")).collect();
        check(&many, TokenError::TooMany);
        let twice = "ada aaaaaaaaaaaaaaaa viewer\n\nbob aaaaaaaaaaaaaaaa";
        check(twice, TokenError::Twice { line: 3, first: 1 });
        assert_eq!(
            Token::parse("\u{feff}ada aaaaaaaaaaaaaaaa").unwrap().len(),
            1
        );
    }
}
