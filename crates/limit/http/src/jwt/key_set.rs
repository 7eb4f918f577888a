//! A JWKS: public keys in JSON (RFC 7517), as far as they verify signatures.
//!
//! Read strictly, for somebody wrote it down on purpose: a key that could never verify anything is
//! a mistake, and so is one that is no public key. Keys for encryption, which stand beside the
//! others in many sets, are left out.

mod read;

use aws_lc_rs::signature::ParsedPublicKey;

use crate::jwt::algorithm::Algorithm;

/// Most bytes of a file: a hundred of the largest keys fit in.
pub const FILE_BYTES_MAX: usize = 256 * 1_024;
/// Most keys. Issuers have two or three, and some one for each of their tenants.
pub const KEYS_MAX: usize = 100;

/// Keys by which tokens are verified.
#[derive(Debug)]
pub struct KeySet {
    keys: Vec<PublicKey>,
}

/// A key, ready for each algorithm that it may be used with.
struct PublicKey {
    /// What tokens call it.
    id: Option<String>,
    uses: Vec<(Algorithm, ParsedPublicKey)>,
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicKey({:?})", self.id)
    }
}

/// Why a text is no set of keys. Shows no key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySetError {
    /// It is longer than it may be.
    #[error("it is too large: at most {FILE_BYTES_MAX} bytes are allowed")]
    TooLarge,
    /// It is no JSON, or not of this kind.
    #[error(
        "found no JSON object with a list of keys (line {line}, column {column}), allowed: \
         {{\"keys\": [...]}}"
    )]
    NoSet {
        /// Where, from 1.
        line: usize,
        /// Where in it, from 1.
        column: usize,
    },
    /// There are too many.
    #[error("found {0} keys, allowed: 1 to {KEYS_MAX}")]
    Count(usize),
    /// All are for encryption.
    #[error("found no key for signatures, allowed: at least one")]
    NoneForSignatures,
    /// A key is wrong.
    #[error("{key}: {member}: {found}, allowed: {allowed}")]
    Key {
        /// Which: its number, from 1, and its `kid`.
        key: String,
        /// What of it.
        member: &'static str,
        /// What is there.
        found: String,
        /// What may be there.
        allowed: String,
    },
}

impl KeySet {
    /// Reads a set.
    ///
    /// # Errors
    ///
    /// Every mistake, in the order of the keys.
    pub fn parse(text: &[u8]) -> Result<Self, Vec<KeySetError>> {
        read::key_set(text)
    }

    /// The key by which a token would be signed that says this of itself; `None` if that is none,
    /// or could be several.
    pub(crate) fn find(&self, algorithm: Algorithm, id: Option<&str>) -> Option<&ParsedPublicKey> {
        let named = self.keys.iter();
        let named = named.filter(|key| id.is_none() || key.id.as_deref() == id);
        let mut fitting = named.filter_map(|key| {
            let mut uses = key.uses.iter();
            uses.find(|(known, _)| *known == algorithm)
        });
        let (_, key) = fitting.next()?;
        // Trying one after the other would let whoever sends tokens choose what they cost.
        fitting.next().is_none().then_some(key)
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none, which no text that is read says.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
