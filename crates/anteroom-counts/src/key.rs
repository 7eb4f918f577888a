//! Who is it that calls, in sixteen bytes?
//!
//! What tells clients apart (an address, the value of a header, several of them) may be long, and may be a
//! secret. Only a keyed digest of it is kept: no entry is larger than another, and nobody who does not
//! know the secret can choose two clients that share an entry. Two that do so by chance are one in 2^64
//! pairs of 2^32 clients.

use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// A client, as one limit knows it.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct CallKey(pub u128);

/// Makes keys, by a secret.
#[derive(Clone, Copy)]
pub struct KeyMaker {
    secret: [u8; 16],
}

impl KeyMaker {
    /// Keys by this secret, which nobody who calls may know.
    #[must_use]
    pub const fn new(secret: [u8; 16]) -> Self {
        Self { secret }
    }

    /// The key of a client that is told by these parts, in this order. How they are split counts:
    /// `["a_b", ""]` is another client than `["a", "b"]`.
    #[must_use]
    pub fn key<'p>(&self, parts: impl IntoIterator<Item = &'p [u8]>) -> CallKey {
        let mut digest = SipHasher13::new_with_key(&self.secret);
        for part in parts {
            digest.write_u64(part.len() as u64);
            digest.write(part);
        }
        CallKey(digest.finish128().as_u128())
    }
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

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", KeyMaker::new([7; 16])), "KeyMaker");
    }
}
