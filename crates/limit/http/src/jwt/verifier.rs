//! Tokens are verified once, and then known for a while.

use std::sync::Arc;

use crate::jwt::cache::{Cache, TokenDigest};
use crate::jwt::key_set::KeySet;
use crate::jwt::token::{self, Expected, Proof, Rejection, TOKEN_BYTES_MAX};

/// Verifies tokens.
pub struct Verifier {
    keys: KeySet,
    expected: Expected,
    /// The claims that are looked for.
    names: Vec<String>,
    cache: Cache,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verifier({:?})", self.keys)
    }
}

impl Verifier {
    /// By these keys, for these claims.
    #[must_use]
    pub fn new(keys: KeySet, expected: Expected, names: Vec<String>) -> Self {
        Self {
            keys,
            expected,
            names,
            cache: Cache::default(),
        }
    }

    /// What a token proves at this second since 1970.
    ///
    /// # Errors
    ///
    /// Why it proves nothing.
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

    /// A claim of what was proved; `None` if the token has none, or one that is no text, number,
    /// `true` or `false`.
    #[must_use]
    pub fn claim<'p>(&self, proof: &'p Proof, name: &str) -> Option<&'p str> {
        let at = self.names.iter().position(|known| known == name)?;
        proof.claim(at)
    }
}
