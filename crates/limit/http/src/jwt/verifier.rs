//! Verifies each token once and caches the result.

use std::sync::Arc;

use crate::jwt::cache::{Cache, TokenDigest};
use crate::jwt::key_set::KeySet;
use crate::jwt::token::{self, Expected, Proof, Rejection, TOKEN_BYTES_MAX};

/// Verifier with a cache.
pub struct Verifier {
    keys: KeySet,
    expected: Expected,
    /// Claims to extract.
    names: Vec<String>,
    cache: Cache,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verifier({:?})", self.keys)
    }
}

impl Verifier {
    /// Creates a verifier with these keys and claims.
    #[must_use]
    pub fn new(keys: KeySet, expected: Expected, names: Vec<String>) -> Self {
        Self {
            keys,
            expected,
            names,
            cache: Cache::default(),
        }
    }

    /// Returns what a token proves at `now`, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// [`Rejection`] of an invalid token.
    pub fn verify(&self, token: &[u8], now: u64) -> Result<Arc<Proof>, Rejection> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Rejection::TooLong);
        }
        let digest = TokenDigest::of(token);
        if let Some(proof) = self.cache.find(digest, now) {
            return Ok(proof);
        }
        let claims = token::verify(token, &self.keys, &self.expected, now)?;
        let proof = Arc::new(Proof::of(&claims, &self.names));
        self.cache.put(digest, Arc::clone(&proof), claims.times);
        Ok(proof)
    }

    /// Returns a claim of a proof; `None` if the token has none, or one that is no text, number,
    /// `true` or `false`.
    #[must_use]
    pub fn claim<'p>(&self, proof: &'p Proof, name: &str) -> Option<&'p str> {
        let at = self.names.iter().position(|known| known == name)?;
        proof.claim(at)
    }
}
