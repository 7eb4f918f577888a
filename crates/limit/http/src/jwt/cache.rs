//! Cache of tokens that were verified recently.
//!
//! It holds valid tokens only, by a digest of all their bytes, so that made-up tokens do not fill
//! it. There are two generations: a full young one becomes the old one, and the previous old one is
//! dropped. That bounds the cache without an LRU list, and frequent tokens stay.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::digest;
use parking_lot::Mutex;

use crate::jwt::token::{Proof, Times};

/// Shards with a lock each, so that threads rarely contend.
const SHARDS: usize = 16;
/// Tokens of one generation in each shard: 8,192 in all, of some hundred bytes each.
const GENERATION_MAX: usize = 256;

/// Digest of a token: SHA-256, which has no known collisions.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(crate) fn of(token: &[u8]) -> Self {
        let digest = digest::digest(&digest::SHA256, token);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

#[derive(Clone)]
struct Known {
    proof: Arc<Proof>,
    times: Times,
}

#[derive(Default)]
struct Shard {
    young: HashMap<TokenDigest, Known>,
    old: HashMap<TokenDigest, Known>,
}

/// Cache of verified tokens; see the module.
#[derive(Default)]
pub(crate) struct Cache {
    shards: [Mutex<Shard>; SHARDS],
}

impl Cache {
    fn shard(&self, digest: TokenDigest) -> &Mutex<Shard> {
        &self.shards[usize::from(digest.0[0]) % SHARDS]
    }

    /// Returns the proof of a cached token that is still valid.
    pub(crate) fn find(&self, digest: TokenDigest, now: u64) -> Option<Arc<Proof>> {
        let mut shard = self.shard(digest).lock();
        let known = match shard.young.get(&digest) {
            Some(known) => known.clone(),
            None => {
                let known = shard.old.remove(&digest)?;
                shard.put(digest, known.clone());
                known
            }
        };
        known.times.check(now).ok()?;
        Some(known.proof)
    }

    /// Adds a token.
    pub(crate) fn put(&self, digest: TokenDigest, proof: Arc<Proof>, times: Times) {
        let mut shard = self.shard(digest).lock();
        shard.put(digest, Known { proof, times });
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let lens = self.shards.iter().map(|shard| {
            let shard = shard.lock();
            shard.young.len() + shard.old.len()
        });
        lens.sum()
    }
}

impl Shard {
    fn put(&mut self, digest: TokenDigest, known: Known) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::token::Times;

    #[test]
    fn the_cache_is_bounded_and_frequent_tokens_stay() {
        let cache = Cache::default();
        let often = TokenDigest::of(b"often");
        let proof = Arc::new(Proof::default());
        let times = Times::of(0, 1_000);
        cache.put(often, Arc::clone(&proof), times);
        for number in 0..50_000_u32 {
            let once = TokenDigest::of(&number.to_le_bytes());
            cache.put(once, Arc::clone(&proof), times);
            assert!(cache.find(often, 1).is_some(), "{number}");
        }
        assert!(cache.len() <= 2 * SHARDS * GENERATION_MAX);
        let first = TokenDigest::of(&0_u32.to_le_bytes());
        assert!(cache.find(first, 1).is_none(), "a rare token is dropped");
        assert!(cache.find(often, 1_000).is_none(), "it has expired");
    }
}
