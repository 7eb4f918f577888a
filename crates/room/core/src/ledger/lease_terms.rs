//! Terms of leases.

use crate::time::DurationMs;

/// Terms of a lease that the caller of a ledger decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseTerms {
    /// Length of a lease.
    pub ttl: DurationMs,
}

impl LeaseTerms {
    /// Terms of the root's leases to data centers. Ten minutes: a link between continents may be
    /// cut for a while. The price is that the seats of a lost data center stay counted for as long.
    pub const ROOT: Self = Self {
        ttl: DurationMs::from_secs(600),
    };
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { ttl: LEASE_TTL }
    }
}

/// Length of a lease to a node: the time that it may go on without its store. Ten seconds bridge a
/// restart of a store. The price is phantom seats after a crash, and intervals freed that much
/// later.
pub const LEASE_TTL: DurationMs = DurationMs::from_secs(10);
