//! Random bytes: ids of visitors, and nonces.

use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_room::id::{NodeId, VisitorId};
use anteroom_room::time::DurationMs;
use anteroom_ticket::NONCE_BYTES;
use rand::Rng as _;

/// Source of ids and nonces.
#[derive(Debug)]
pub(crate) struct Random {
    /// First part of a nonce; the rest is a count. This is cheaper than random bytes of the system
    /// each time. Two processes with the same prefix reveal only that two tickets are equal.
    prefix: [u8; NONCE_BYTES - 8],
    count: AtomicU64,
}

impl Random {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut prefix = [0; NONCE_BYTES - 8];
        getrandom::fill(&mut prefix)?;
        Ok(Self {
            prefix,
            count: AtomicU64::new(getrandom::u64()?),
        })
    }

    pub(crate) fn nonce(&self) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        let (prefix, count) = nonce.split_at_mut(self.prefix.len());
        prefix.copy_from_slice(&self.prefix);
        count.copy_from_slice(&self.count.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        nonce
    }

    /// Returns a period up to a sixteenth shorter or longer, so that nodes that started together do
    /// not keep writing the same record at the same moment.
    pub(crate) fn jittered(&self, period: DurationMs) -> DurationMs {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let drawn = count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        DurationMs(period.0 - period.0 / 16 + period.0 * drawn / 8 / 0x1_0000)
    }

    /// Draws the id of a new visitor from the thread's generator, which is cryptographic, seeded by
    /// the system and reseeded every 64 KiB. Random bytes of the system for each visitor would cost
    /// more than the decision.
    ///
    /// # Panics
    ///
    /// If the system has no random bytes for a new thread, although it had some when the process
    /// started. Without a panic two visitors could get the same id.
    pub(crate) fn visitor() -> VisitorId {
        let mut id = [0; 16];
        rand::rng().fill_bytes(&mut id);
        VisitorId(id)
    }
}

/// Draws the id of a new node; never 0.
pub(crate) fn node_id() -> Result<NodeId, getrandom::Error> {
    Ok(NodeId(getrandom::u64()? | 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_and_ids_do_not_repeat() {
        let random = Random::new().unwrap();
        assert_ne!(random.nonce(), random.nonce());
        assert_ne!(Random::visitor(), Random::visitor());
    }

    #[test]
    fn a_jittered_period_varies_a_little_around_its_mean() {
        let random = Random::new().unwrap();
        let period = DurationMs(1_600);
        let drawn: Vec<DurationMs> = (0..1_000).map(|_| random.jittered(period)).collect();
        let range = DurationMs(1_500)..=DurationMs(1_700);
        assert!(drawn.iter().all(|one| range.contains(one)));
        let mean = drawn.iter().map(|one| one.0).sum::<u64>() / 1_000;
        assert!(mean.abs_diff(period.0) < 20, "{mean}");
    }
}
