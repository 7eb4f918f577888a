//! Who is it that calls, in sixteen bytes?
//!
//! What tells clients apart (an address, the value of a header, several of them) may be long, and may be a
//! secret. Only a digest of it is kept: no entry is larger than another. Two clients that share one by chance are
//! one in 2^64 pairs of 2^32 clients.
//!
//! - In the memory of one process the digest is keyed, and fast: nobody who does not know the secret can choose two
//!   clients that share an entry.
//! - Counts that several nodes share need the same digest at each, today and after any change of keys. It is the
//!   first half of a SHA-256: choosing two clients that share an entry takes 2^64 tries, and brings whoever does
//!   it one entry where he could have had two. Who may read the store can try addresses until one fits.

use std::fmt;
use std::hash::Hasher as _;

use aws_lc_rs::digest::{Context, SHA256};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// A client, as one limit knows it.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct CallKey(pub u128);

/// What is hashed before anything else: digests of this form, and of no other use or later form.
const SHARED_FORM: &[u8] = b"anteroom calls 1";

/// Makes keys.
#[derive(Clone, Copy)]
pub struct KeyMaker(Way);

#[derive(Clone, Copy)]
enum Way {
    Secret([u8; 16]),
    Shared,
}

impl KeyMaker {
    /// Keys by this secret, which nobody who calls may know.
    #[must_use]
    pub const fn new(secret: [u8; 16]) -> Self {
        Self(Way::Secret(secret))
    }

    /// Keys that all nodes make alike.
    #[must_use]
    pub const fn shared() -> Self {
        Self(Way::Shared)
    }

    /// The key of a client that is told by these parts, in this order. How they are split counts:
    /// `["a_b", ""]` is another client than `["a", "b"]`.
    #[must_use]
    pub fn key<'p>(&self, parts: impl IntoIterator<Item = &'p [u8]>) -> CallKey {
        match &self.0 {
            Way::Secret(secret) => {
                let mut digest = SipHasher13::new_with_key(secret);
                for part in parts {
                    digest.write_u64(part.len() as u64);
                    digest.write(part);
                }
                CallKey(digest.finish128().as_u128())
            }
            Way::Shared => {
                let mut digest = Context::new(&SHA256);
                digest.update(SHARED_FORM);
                for part in parts {
                    digest.update(&(part.len() as u64).to_le_bytes());
                    digest.update(part);
                }
                let digest = digest.finish();
                let first = digest.as_ref().first_chunk().copied();
                CallKey(u128::from_be_bytes(first.unwrap_or_default()))
            }
        }
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
        key_by(KeyMaker::new([secret; 16]), parts)
    }

    fn key_by(maker: KeyMaker, parts: &[&str]) -> CallKey {
        maker.key(parts.iter().map(|part| part.as_bytes()))
    }

    #[test]
    fn how_parts_are_split_counts() {
        for maker in [KeyMaker::new([1; 16]), KeyMaker::shared()] {
            let key = |parts: &[&str]| key_by(maker, parts);
            assert_eq!(key(&["a", "b"]), key(&["a", "b"]));
            let all = [
                key(&["a_b", ""]),
                key(&["a", "b"]),
                key(&["ab"]),
                key(&["", "ab"]),
                key(&["b", "a"]),
                key(&[]),
                key(&[""]),
            ];
            for (at, one) in all.iter().enumerate() {
                assert!(!all[at + 1..].contains(one), "{at}");
            }
        }
    }

    /// By another program: the first sixteen bytes of `sha256sum`. Counts in a store would begin anew if they changed.
    #[test]
    fn all_nodes_make_the_same_keys() {
        let check = |parts: &[&str], expected: u128| {
            assert_eq!(
                key_by(KeyMaker::shared(), parts),
                CallKey(expected),
                "{parts:?}"
            );
        };
        check(&[], 0xbac1301c_1fae3011_f5f6ae43_04cbf043);
        check(&["192.0.2.7"], 0x80f2beb8_050e4dc3_f097c805_06c02c4b);
        check(&["key-7", ""], 0x9536493c_694c056a_571dda9b_4a4919a5);
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
