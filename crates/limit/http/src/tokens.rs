//! Signed tokens of a request and their claims.
//!
//! The tokens of a request are verified once for all limits, and not at all if no limit needs them.
//! A token that does not verify counts as missing. If a request carries several tokens that the
//! origin may use, every valid one counts.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use crate::jwt::{Expected, KeySet, KeySetError, Proof, Verifier};
use anteroom_config::{JwtConfig, JwtKeys, KeyPart, LimitConfig, TokenSource};
use anteroom_proxy::cookies;
use anteroom_proxy::forwarded::is_same;
use anteroom_proxy::header_view::HeaderView;

use crate::distinct::{Unknown, distinct};

/// Most tokens of one request. Genuine requests carry one, and each costs a signature.
const TOKENS_MAX: usize = 4;
/// Word before a token in `Authorization`, optional elsewhere. Spaces or tabs separate them, as
/// origins take both.
const BEARER: &[u8] = b"bearer";
const AUTHORIZATION: &str = "authorization";

/// Configured source and keys of tokens.
pub struct Tokens {
    store_name: TokenSource,
    verifier: Verifier,
}

/// Error of a token configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// The key file was named and not read.
    #[error("jwt.keys_file was not read")]
    NotRead,
    /// The file is not a key set; holds the first mistake in it.
    #[error("jwt.keys_file: {0}")]
    Keys(KeySetError),
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({:?})", self.verifier)
    }
}

impl Tokens {
    /// Creates a verifier for tokens of this configuration and for the claims that these limits
    /// use.
    ///
    /// # Errors
    ///
    /// [`TokensError`] if there are no valid keys.
    pub fn new(config: &JwtConfig, limits: &[LimitConfig]) -> Result<Self, TokensError> {
        let JwtKeys::Text(keys) = &config.keys else {
            return Err(TokensError::NotRead);
        };
        let keys = KeySet::parse(keys).map_err(|mistakes| {
            let first = mistakes.into_iter().next();
            first.map_or(TokensError::NotRead, TokensError::Keys)
        })?;
        let expected = Expected {
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
            leeway_seconds: config.leeway.0 / 1_000,
        };
        let parts = limits.iter().flat_map(|limit| &limit.key.parts);
        let mut names: Vec<String> = parts
            .filter_map(|part| match part {
                KeyPart::JwtClaim(name) => Some(name.clone()),
                _ => None,
            })
            .collect();
        names.sort();
        names.dedup();
        Ok(Self {
            store_name: config.token.clone(),
            verifier: Verifier::new(keys, expected, names),
        })
    }

    /// Returns the distinct token texts of a request.
    fn texts<'h>(&self, headers: HeaderView<'h>) -> Result<Vec<Cow<'h, [u8]>>, Unknown> {
        match &self.store_name {
            TokenSource::Header(name) => {
                // Match every spelling that an origin may take for it.
                let values = headers.iter().filter(|(sent, _)| is_same(sent, name));
                let needs_bearer = name == AUTHORIZATION;
                let texts = values.filter_map(|(_, value)| unwrapped(value, needs_bearer));
                distinct(texts.map(Cow::Borrowed))
            }
            TokenSource::Cookie(name) => {
                distinct(cookies::all_values(headers, name).map(Cow::Borrowed))
            }
        }
    }

    fn proofs(&self, headers: HeaderView<'_>, now: u64) -> Result<Vec<Arc<Proof>>, Unknown> {
        let texts = self.texts(headers)?;
        if texts.len() > TOKENS_MAX {
            return Err(Unknown::TooMany);
        }
        let proofs = texts
            .iter()
            .filter_map(|text| self.verifier.verify(text, now).ok());
        Ok(proofs.collect())
    }
}

/// Returns a token without the word in front of it.
fn unwrapped(value: &[u8], needs_bearer: bool) -> Option<&[u8]> {
    let token = value.split_at_checked(BEARER.len());
    let token = token.filter(|(start, rest)| {
        start.eq_ignore_ascii_case(BEARER) && matches!(rest.first(), Some(b' ' | b'\t'))
    });
    match token {
        Some((_, token)) => Some(token.trim_ascii()),
        None => (!needs_bearer).then(|| value.trim_ascii()),
    }
}

/// Tokens of one request, verified on first use.
pub(crate) struct ShownTokens<'r> {
    tokens: Option<&'r Tokens>,
    headers: HeaderView<'r>,
    /// Seconds since 1970, by the wall clock.
    now: u64,
    proofs: OnceCell<Result<Vec<Arc<Proof>>, Unknown>>,
}

impl fmt::Debug for ShownTokens<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShownTokens({:?})", self.tokens)
    }
}

impl<'r> ShownTokens<'r> {
    pub(crate) const fn of(tokens: Option<&'r Tokens>, headers: HeaderView<'r>, now: u64) -> Self {
        Self {
            tokens,
            headers,
            now,
            proofs: OnceCell::new(),
        }
    }

    /// Whether the request carries a token that is not verified yet.
    pub(crate) fn need_verification(&self) -> bool {
        let texts = |tokens: &Tokens| tokens.texts(self.headers).is_ok();
        self.proofs.get().is_none() && self.tokens.is_some_and(texts)
    }

    /// Returns this claim of all valid tokens.
    pub(crate) fn claim(&self, name: &str) -> Result<Vec<Cow<'r, [u8]>>, Unknown> {
        let tokens = self.tokens.ok_or(Unknown::Missing)?;
        let proofs = self
            .proofs
            .get_or_init(|| tokens.proofs(self.headers, self.now));
        let proofs = proofs.as_ref().map_err(|unknown| *unknown)?;
        let claims = proofs.iter().filter_map(|proof| {
            let claim = tokens.verifier.claim(proof, name)?;
            Some(Cow::Owned(claim.as_bytes().to_vec()))
        });
        distinct(claims)
    }
}

#[cfg(test)]
mod tests;
