//! Random bytes: ids of visitors, and nonces.

use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_core::id::{NodeId, VisitorId};
use anteroom_ticket::NONCE_BYTES;

/// Draws ids and nonces.
#[derive(Debug)]
pub(crate) struct Random {
    /// A nonce is this and a count: cheaper than asking the system every time, and two processes
    /// that share a prefix by chance reveal only that two tickets are equal.
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

    /// A new visitor.
    ///
    /// # Panics
    ///
    /// If the system has no random bytes any more, which it had when this process started. Going
    /// on would hand one visitor the place of another.
    pub(crate) fn visitor(&self) -> VisitorId {
        let mut id = [0; 16];
        getrandom::fill(&mut id).expect("the system had random bytes at the start");
        VisitorId(id)
    }
}

/// A new life of this node; never 0.
pub(crate) fn node_id() -> Result<NodeId, getrandom::Error> {
    Ok(NodeId(getrandom::u64()? | 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_do_not_repeat() {
        let random = Random::new().unwrap();
        assert_ne!(random.nonce(), random.nonce());
        assert_ne!(random.visitor(), random.visitor());
    }
}
