//! For how long is anything lent?

use crate::time::Span;

/// What the caller of a ledger decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LendingTerms {
    /// How long a lease runs.
    pub ttl: Span,
}

impl LendingTerms {
    /// Of the world to a data center. Ten minutes: a link between continents may be cut for a
    /// while; what that costs is how long the seats of a data center that was lost stay counted.
    pub const WORLD: Self = Self {
        ttl: Span::from_secs(600),
    };
}

impl Default for LendingTerms {
    fn default() -> Self {
        Self { ttl: LEASE_TTL }
    }
}

/// How long a node may go on without its store. Ten seconds bridge a restart of a store; what
/// that costs is phantom seats after a crash, and intervals freed that much later.
pub const LEASE_TTL: Span = Span::from_secs(10);
