//! Facts about a store that its records depend on: which server it is, and what it keeps.

use crate::time::DurationMs;

/// Identity of a store: another value after it may have lost writes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Identity(pub u64);

/// Promise of a store about acknowledged writes, for the time when it comes back as another server.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Durability {
    /// No promise: writes of any length of time may be missing.
    #[default]
    Unknown,
    /// Only the writes of this last length of time may be missing.
    LosesAtMost(DurationMs),
    /// No write is missing.
    KeepsAll,
}

/// Facts about the store of a record.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StoreFacts {
    /// Identity of the server.
    pub identity: Identity,
    /// Promise about its writes.
    pub durability: Durability,
}

impl StoreFacts {
    /// Returns the time after which the store is certain to keep a write. Zero without any promise,
    /// too: a record of such a store is never trusted after a comeback.
    #[must_use]
    pub fn safe_after(self) -> DurationMs {
        match self.durability {
            Durability::LosesAtMost(longest) => longest,
            Durability::Unknown | Durability::KeepsAll => DurationMs::ZERO,
        }
    }
}
