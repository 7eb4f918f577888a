//! Keys of clients, sixteen bytes each.
//!
//! What identifies a client (an address, the value of a header, several of them) may be long, and
//! may be a secret. Only a keyed digest of it is kept. So all entries have one size, and without
//! the secret nobody can choose two clients that share an entry. Among 2^32 clients, two share one
//! by chance with a probability of about one in 2^64.
//!
//! Nodes that share a store must derive the same keys, also after a restart and without a common
//! secret. They use the first 128 bits of SHA-256: finding two clients that share an entry takes
//! 2^64 tries.

use std::fmt;
use std::hash::Hasher as _;

use aws_lc_rs::digest::{Context, SHA256};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// First byte of everything that is digested for stores. Change it whenever the digested bytes
/// change: then all counts start anew, and none is taken for another client's.
const VERSION: u8 = 1;

/// Key of a client, within one limit.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct ClientKey(pub u128);

/// Derives the keys of clients.
#[derive(Clone, Copy)]
pub struct KeyMaker {
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Keyed by a secret of this process.
    Secret([u8; 16]),
    /// Equal on all nodes, derived from the digest of the limit's name.
    Shared([u8; 32]),
}

impl KeyMaker {
    /// Derives keys by this secret, which no client may know.
    #[must_use]
    pub const fn new(secret: [u8; 16]) -> Self {
        let kind = Kind::Secret(secret);
        Self { kind }
    }

    /// Derives the keys of a limit's clients for a store that several nodes share. They are the
    /// same on all nodes and after every restart.
    #[must_use]
    pub fn shared(limit: &str) -> Self {
        let mut digest = Context::new(&SHA256);
        digest.update(&[VERSION]);
        digest.update(limit.as_bytes());
        let kind = Kind::Shared(finish(digest));
        Self { kind }
    }

    /// Derives the key of the client that these parts identify. Their order and their boundaries
    /// matter: `["a_b", ""]` is another client than `["a", "b"]`.
    #[must_use]
    pub fn key<'p>(&self, parts: impl IntoIterator<Item = &'p [u8]>) -> ClientKey {
        match &self.kind {
            Kind::Secret(secret) => {
                let mut digest = SipHasher13::new_with_key(secret);
                for part in parts {
                    digest.write_u64(part.len() as u64);
                    digest.write(part);
                }
                ClientKey(digest.finish128().as_u128())
            }
            Kind::Shared(limit) => {
                let mut digest = Context::new(&SHA256);
                digest.update(&[VERSION]);
                digest.update(limit);
                for part in parts {
                    digest.update(&(part.len() as u64).to_le_bytes());
                    digest.update(part);
                }
                let mut first = [0; 16];
                first.copy_from_slice(&finish(digest)[..16]);
                ClientKey(u128::from_be_bytes(first))
            }
        }
    }
}

fn finish(digest: Context) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.finish().as_ref());
    bytes
}

impl ClientKey {
    /// Returns 64 of its bits, for a hash table.
    pub(crate) const fn table_hash(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallKey({:032x})", self.0)
    }
}

impl fmt::Debug for KeyMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyMaker")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: u8, parts: &[&str]) -> ClientKey {
        KeyMaker::new([secret; 16]).key(parts.iter().map(|part| part.as_bytes()))
    }

    #[test]
    fn boundaries_between_parts_change_the_key() {
        assert_eq!(key(1, &["a", "b"]), key(1, &["a", "b"]));
        let all = [
            key(1, &["a_b", ""]),
            key(1, &["a", "b"]),
            key(1, &["ab"]),
            key(1, &["", "ab"]),
            key(1, &["b", "a"]),
            key(1, &[]),
            key(1, &[""]),
        ];
        for (index, candidate) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(candidate), "{index}");
        }
    }

    #[test]
    fn another_secret_makes_other_keys() {
        assert_ne!(key(1, &["a"]), key(2, &["a"]));
    }

    fn shared(limit: &str, parts: &[&str]) -> ClientKey {
        KeyMaker::shared(limit).key(parts.iter().map(|part| part.as_bytes()))
    }

    #[test]
    fn shared_keys_depend_on_the_limit_and_on_part_boundaries() {
        let all = [
            shared("api", &["a_b", ""]),
            shared("api", &["a", "b"]),
            shared("api", &["ab"]),
            shared("api", &[]),
            shared("apia", &["b"]),
            shared("ap", &["ia", "b"]),
            shared("web", &["a", "b"]),
        ];
        for (index, candidate) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(candidate), "{index}");
        }
    }

    /// Expected values are from `sha256sum`: of the version and the limit; then of the version,
    /// that digest, and each part after its length. Nodes of two versions may share a store.
    #[test]
    fn shared_keys_never_change() {
        assert_eq!(
            format!("{:?}", shared("api", &["a", "bc"])),
            "CallKey(5822dc13944dee73645143987c852811)"
        );
        assert_eq!(
            format!("{:?}", shared("", &[])),
            "CallKey(981fc8d471a8b01932e384ac1cd0a062)"
        );
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", KeyMaker::new([7; 16])), "KeyMaker");
    }
}
