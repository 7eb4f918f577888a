//! For how long is anything lent?

use crate::time::DurationMs;

/// What the caller of a ledger decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseTerms {
    /// How long a lease runs.
    pub ttl: DurationMs,
}

impl LeaseTerms {
    /// Of the world to a data center. Ten minutes: a link between continents may be cut for a
    /// while; what that costs is how long the seats of a data center that was lost stay counted.
    pub const ROOT: Self = Self {
        ttl: DurationMs::from_secs(600),
    };
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { ttl: LEASE_TTL }
    }
}

/// How long a node may go on without its store. Ten seconds bridge a restart of a store; what
/// that costs is phantom seats after a crash, and intervals freed that much later.
pub const LEASE_TTL: DurationMs = DurationMs::from_secs(10);
