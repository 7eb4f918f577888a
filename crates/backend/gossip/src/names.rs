//! What are the counters of a client called between nodes?
//!
//! A keyed digest of the limit's name and the client, in sixteen bytes. The key is drawn from the
//! shared secret, so all nodes come to the same name, and whoever listens to them cannot tell
//! whether it is somebody's whom he knows.
//!
//! Clients for whom there is no place are counted together, see [`crate::board`]: such a *crowd*
//! has a name, too.

use std::hash::Hasher as _;

use anteroom_limit_store::CallKey;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Set in the name of a client, and not in that of a crowd.
const IS_CLIENT: u128 = 1 << 127;
/// How many crowds a limit has. More would keep fewer innocent from suffering, and take more place.
const CROWDS: u128 = 64;

/// Makes names.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    key: [u8; 16],
}

impl Names {
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// The name of a client of a limit.
    pub(crate) fn client(&self, limit: &str, key: CallKey) -> u128 {
        self.digest(limit, key.0) | IS_CLIENT
    }

    /// The name of the crowd to which a client belongs.
    pub(crate) fn crowd(&self, limit: &str, client: u128) -> u128 {
        self.digest(limit, client % CROWDS) & !IS_CLIENT
    }

    fn digest(&self, limit: &str, key: u128) -> u128 {
        let mut digest = SipHasher13::new_with_key(&self.key);
        digest.write_u64(limit.len() as u64);
        digest.write(limit.as_bytes());
        digest.write(&key.to_le_bytes());
        digest.finish128().as_u128()
    }
}

/// Whether it is the name of a crowd.
pub(crate) const fn is_crowd(name: u128) -> bool {
    name & IS_CLIENT == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_clients_crowds_and_secrets_have_names_of_their_own() {
        let names = Names::new([7; 16]);
        let one = names.client("api", CallKey(1));
        assert_eq!(one, names.client("api", CallKey(1)));
        let others = [
            names.client("api", CallKey(2)),
            names.client("site", CallKey(1)),
            Names::new([8; 16]).client("api", CallKey(1)),
            names.crowd("api", one),
        ];
        assert!(others.iter().all(|other| *other != one));
        assert_eq!(others.map(is_crowd), [false, false, false, true]);
        assert!(!is_crowd(one));
        let crowds = (0..10_000).map(|client| names.crowd("api", client));
        let crowds: std::collections::BTreeSet<u128> = crowds.collect();
        assert_eq!(crowds.len(), 64);
    }
}
