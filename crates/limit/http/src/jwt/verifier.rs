//! Tokens are verified once, and then known for a while.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::jwt::cache::{Cache, TokenDigest};
use crate::jwt::key_set::KeySet;
use crate::jwt::token::{self, Rejection, TOKEN_BYTES_MAX};

/// What a token must say.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Expected {
    /// Who has issued it (`iss`); `None`: whoever has the key.
    pub issuer: Option<String>,
    /// For whom it is (`aud`); `None`: for whoever gets it.
    pub audience: Option<String>,
    /// How far the clocks of issuer and verifier may be apart.
    pub leeway_seconds: u64,
}

/// What a good token says: the claims that were asked for, in their order. Shows none of them.
#[derive(Default, Eq, PartialEq)]
pub struct Proof {
    claims: Box<[Option<Box<str>>]>,
}

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proof([{} claims])", self.claims.len())
    }
}

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
        let names = self.names.iter();
        let proof = Arc::new(Proof {
            claims: names.map(|name| text(&claims.members, name)).collect(),
        });
        self.cache.put(digest, Arc::clone(&proof), claims.times);
        Ok(proof)
    }

    /// A claim of what was proved; `None` if the token has none, or one that is no text, number,
    /// `true` or `false`.
    #[must_use]
    pub fn claim<'p>(&self, proof: &'p Proof, name: &str) -> Option<&'p str> {
        let at = self.names.iter().position(|known| known == name)?;
        proof.claims.get(at)?.as_deref()
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Option<Box<str>> {
    match members.get(name)? {
        Value::String(text) => Some(text.as_str().into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(switch) => Some(switch.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
