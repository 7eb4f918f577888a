//! Who is it that calls, in sixteen bytes?
//!
//! What tells clients apart (an address, the value of a header, several of them) may be long, and
//! may be a secret. Only a keyed digest of it is kept: no entry is larger than another, and nobody
//! who does not know the secret can choose two clients that share an entry. Two that do so by
//! chance are one in 2^64 pairs of 2^32 clients.
//!
//! Nodes that share a store must make the same keys, also after a restart and without a secret that
//! all know. They take a digest that nobody has found two texts for, SHA-256, of which 128 bits
//! stay: to find two clients that share an entry takes 2^64 tries.

use std::fmt;
use std::hash::Hasher as _;

use aws_lc_rs::digest::{Context, SHA256};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// The first byte of all that is digested for stores. Whoever changes what is digested changes it:
/// all counts begin anew then, instead of some being taken for others.
const VERSION: u8 = 1;

/// A client, as one limit knows it.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct CallKey(pub u128);

/// Makes keys of clients.
#[derive(Clone, Copy)]
pub struct KeyMaker {
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// By a secret of this process.
    Secret([u8; 16]),
    /// The same on all nodes, by the digest of a limit's name.
    Shared([u8; 32]),
}

impl KeyMaker {
    /// Keys by this secret, which nobody who calls may know.
    #[must_use]
    pub const fn new(secret: [u8; 16]) -> Self {
        let kind = Kind::Secret(secret);
        Self { kind }
    }

    /// Keys of clients of this limit for a store that several nodes share: the same on all of them,
    /// and after every restart.
    #[must_use]
    pub fn shared(limit: &str) -> Self {
        let mut digest = Context::new(&SHA256);
        digest.update(&[VERSION]);
        digest.update(limit.as_bytes());
        let kind = Kind::Shared(finish(digest));
        Self { kind }
    }

    /// The key of a client that is told by these parts, in this order. How they are split counts:
    /// `["a_b", ""]` is another client than `["a", "b"]`.
    #[must_use]
    pub fn key<'p>(&self, parts: impl IntoIterator<Item = &'p [u8]>) -> CallKey {
        match &self.kind {
            Kind::Secret(secret) => {
                let mut digest = SipHasher13::new_with_key(secret);
                for part in parts {
                    digest.write_u64(part.len() as u64);
                    digest.write(part);
                }
                CallKey(digest.finish128().as_u128())
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
                CallKey(u128::from_be_bytes(first))
            }
        }
    }
}

fn finish(digest: Context) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.finish().as_ref());
    bytes
}

impl CallKey {
    /// Sixty-four of its bits, for a place in memory.
    pub(crate) const fn place(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

impl fmt::Debug for CallKey {
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

    fn key(secret: u8, parts: &[&str]) -> CallKey {
        KeyMaker::new([secret; 16]).key(parts.iter().map(|part| part.as_bytes()))
    }

    #[test]
    fn how_parts_are_split_counts() {
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
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one), "{at}");
        }
    }

    #[test]
    fn another_secret_makes_other_keys() {
        assert_ne!(key(1, &["a"]), key(2, &["a"]));
    }

    fn shared(limit: &str, parts: &[&str]) -> CallKey {
        KeyMaker::shared(limit).key(parts.iter().map(|part| part.as_bytes()))
    }

    #[test]
    fn stores_see_how_parts_are_split_and_the_limit() {
        let all = [
            shared("api", &["a_b", ""]),
            shared("api", &["a", "b"]),
            shared("api", &["ab"]),
            shared("api", &[]),
            shared("apia", &["b"]),
            shared("ap", &["ia", "b"]),
            shared("web", &["a", "b"]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one), "{at}");
        }
    }

    /// Made by `sha256sum`: of the version and the limit, and of the version, that digest, and each
    /// part behind its length. Nodes of two versions of this program share a store.
    #[test]
    fn keys_for_stores_are_these_for_ever() {
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
