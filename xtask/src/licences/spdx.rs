//! Can an SPDX licence expression be met with a given set of licences?
//!
//! `AND`, `OR`, `WITH`, brackets, and the slash of old manifests (`MIT/Apache-2.0`, meaning `OR`).
//! Does not know which licences exist: names are compared letter by letter.

use std::fmt;

/// Brackets inside brackets that are still read. Real expressions have one or two; the bound
/// keeps a hostile one from exhausting the stack.
const DEPTH_MAX: usize = 32;

/// Why an expression cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SpdxError {
    /// A name or an opening bracket should stand here.
    NameExpected,
    /// Something follows that belongs nowhere.
    Trailing,
    /// An opening bracket has no partner.
    Unclosed,
    /// More than 32 brackets inside each other.
    TooDeep,
}

impl fmt::Display for SpdxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NameExpected => "a licence name is missing",
            Self::Trailing => "it goes on after its end",
            Self::Unclosed => "a bracket is not closed",
            Self::TooDeep => "too many brackets inside each other",
        })
    }
}

/// Whether `expression` can be met when exactly the licences are used that `is_allowed` accepts.
/// A licence with an exception is asked for as one: `Apache-2.0 WITH LLVM-exception`.
///
/// # Errors
///
/// When it is not an SPDX expression.
pub(super) fn is_satisfied(
    expression: &str,
    is_allowed: &dyn Fn(&str) -> bool,
) -> Result<bool, SpdxError> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut reader = Reader {
        words: spaced.split_whitespace().peekable(),
        is_allowed,
    };
    let is_satisfied = reader.either(0)?;
    match reader.words.next() {
        None => Ok(is_satisfied),
        Some(_) => Err(SpdxError::Trailing),
    }
}

struct Reader<'a> {
    words: std::iter::Peekable<std::str::SplitWhitespace<'a>>,
    is_allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Reader<'a> {
    /// Takes the next word if it is `word`.
    fn takes(&mut self, word: &str) -> bool {
        self.words.next_if(|next| *next == word).is_some()
    }

    /// `a OR b OR ...`: binds weakest.
    fn either(&mut self, depth: usize) -> Result<bool, SpdxError> {
        let mut is_satisfied = self.both(depth)?;
        while self.takes("OR") {
            // Not `||`: the right side must be read in any case.
            is_satisfied |= self.both(depth)?;
        }
        Ok(is_satisfied)
    }

    /// `a AND b AND ...`.
    fn both(&mut self, depth: usize) -> Result<bool, SpdxError> {
        let mut is_satisfied = self.one(depth)?;
        while self.takes("AND") {
            is_satisfied &= self.one(depth)?;
        }
        Ok(is_satisfied)
    }

    /// A name, a name with an exception, or brackets.
    fn one(&mut self, depth: usize) -> Result<bool, SpdxError> {
        if self.takes("(") {
            if depth == DEPTH_MAX {
                return Err(SpdxError::TooDeep);
            }
            let is_satisfied = self.either(depth + 1)?;
            return if self.takes(")") {
                Ok(is_satisfied)
            } else {
                Err(SpdxError::Unclosed)
            };
        }
        let name = self.name()?;
        if self.takes("WITH") {
            let exception = self.name()?;
            return Ok((self.is_allowed)(&format!("{name} WITH {exception}")));
        }
        Ok((self.is_allowed)(name))
    }

    fn name(&mut self) -> Result<&'a str, SpdxError> {
        let is_name = |word: &&str| !["(", ")", "AND", "OR", "WITH"].contains(word);
        self.words.next_if(is_name).ok_or(SpdxError::NameExpected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: Result<bool, SpdxError>) {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
        let found = is_satisfied(expression, &|name| allowed.contains(&name));
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn one_side_of_or_and_all_of_and_must_be_allowed() {
        check("MIT", Ok(true));
        check("MIT OR GPL-3.0-only", Ok(true));
        check("GPL-3.0-only/MIT", Ok(true));
        check("GPL-3.0-only / MIT", Ok(true));
        check("MIT AND GPL-3.0-only", Ok(false));
        check("MIT AND ISC", Ok(true));
    }

    #[test]
    fn and_binds_before_or_and_brackets_before_both() {
        check("MIT OR GPL-3.0-only AND GPL-2.0-only", Ok(true));
        check("(MIT OR GPL-3.0-only) AND GPL-2.0-only", Ok(false));
        check("ISC AND (Apache-2.0 OR ISC)", Ok(true));
    }

    #[test]
    fn an_exception_belongs_to_the_name() {
        check("Apache-2.0 WITH LLVM-exception", Ok(true));
        check("Apache-2.0", Ok(false));
        check("MIT WITH LLVM-exception", Ok(false));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        check("", Err(SpdxError::NameExpected));
        check("MIT OR", Err(SpdxError::NameExpected));
        check("MIT ISC", Err(SpdxError::Trailing));
        check("MIT)", Err(SpdxError::Trailing));
        check("(MIT", Err(SpdxError::Unclosed));
        check("()", Err(SpdxError::NameExpected));
        check(&"(".repeat(100_000), Err(SpdxError::TooDeep));
    }
}
