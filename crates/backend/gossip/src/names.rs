//! Names of the counters of a client in messages between nodes.
//!
//! A name is a keyed digest of the limit's name and the client, in sixteen bytes. The key is
//! derived from the shared secret, so all nodes compute the same name. An eavesdropper cannot tell
//! whether a name belongs to a client that it knows.
//!
//! Clients that do not fit into the table share an *overflow entry*, see [`crate::counter_table`].
//! It has a name, too.

use std::hash::Hasher as _;

use anteroom_limit_store::ClientKey;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Bit that is set in the name of a client, and not in that of an overflow entry.
const IS_CLIENT: u128 = 1 << 127;
/// Overflow entries of a limit. More would reject fewer innocent clients, and take more memory.
const OVERFLOW_ENTRIES: u128 = 64;

/// Computes names.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    key: [u8; 16],
}

impl Names {
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// Returns the name of a client of a limit.
    pub(crate) fn client(&self, limit: &str, key: ClientKey) -> u128 {
        self.digest(limit, key.0) | IS_CLIENT
    }

    /// Returns the name of the overflow entry of a client.
    pub(crate) fn overflow(&self, limit: &str, client: u128) -> u128 {
        self.digest(limit, client % OVERFLOW_ENTRIES) & !IS_CLIENT
    }

    fn digest(&self, limit: &str, key: u128) -> u128 {
        let mut digest = SipHasher13::new_with_key(&self.key);
        digest.write_u64(limit.len() as u64);
        digest.write(limit.as_bytes());
        digest.write(&key.to_le_bytes());
        digest.finish128().as_u128()
    }
}

/// Returns whether this is the name of an overflow entry.
pub(crate) const fn is_overflow(name: u128) -> bool {
    name & IS_CLIENT == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_by_limit_client_overflow_entry_and_secret() {
        let names = Names::new([7; 16]);
        let one = names.client("api", ClientKey(1));
        assert_eq!(one, names.client("api", ClientKey(1)));
        let others = [
            names.client("api", ClientKey(2)),
            names.client("site", ClientKey(1)),
            Names::new([8; 16]).client("api", ClientKey(1)),
            names.overflow("api", one),
        ];
        assert!(others.iter().all(|other| *other != one));
        assert_eq!(others.map(is_overflow), [false, false, false, true]);
        assert!(!is_overflow(one));
        let entries = (0..10_000).map(|client| names.overflow("api", client));
        let entries: std::collections::BTreeSet<u128> = entries.collect();
        assert_eq!(entries.len(), 64);
    }
}
