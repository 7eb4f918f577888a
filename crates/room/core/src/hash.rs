//! Keyed and plain hashing of visitor ids: for the lottery, for jitter, for maps.
//!
//! Ids in maps come out of authentic tickets that we wrote ourselves, so the map hasher needs no
//! secret; the lottery does, or visitors could compute who wins.

use core::hash::{BuildHasher, Hasher};

use siphasher::sip::SipHasher13;

use crate::id::VisitorId;

/// Secret of the deployment for lotteries: 128 random bits, the same on all nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LotteryKey(pub [u8; 16]);

impl LotteryKey {
    /// Draws a number, uniform over all 64-bit values and independent for every `round`.
    #[must_use]
    pub fn draw(&self, visitor: VisitorId, round: u64) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(&visitor.0);
        hasher.write_u64(round);
        hasher.finish()
    }
}

/// Builder of the hasher of maps keyed by visitor: the same in every process, so that a run can be
/// repeated.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedState;

/// Hasher that takes eight of an id's random bytes as they are.
#[derive(Default)]
pub struct IdHasher(u64);

impl BuildHasher for FixedState {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher::default()
    }
}

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        // Spreads ids that differ in few bits, as numbered ones of tests do, over all bits.
        let spread = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        spread ^ (spread >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = self.0.rotate_left(29) ^ u64::from_le_bytes(word);
        }
    }

    fn write_usize(&mut self, _length: usize) {
        // Ids have one length; hashing it adds nothing.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_key_visitor_and_round() {
        let draw = |key, id, round| LotteryKey([key; 16]).draw(VisitorId([id; 16]), round);
        let one = draw(1, 1, 1);
        assert_eq!(one, draw(1, 1, 1));
        assert_ne!(one, draw(2, 1, 1));
        assert_ne!(one, draw(1, 2, 1));
        assert_ne!(one, draw(1, 1, 2));
    }
}
