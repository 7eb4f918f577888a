//! Facts about a store that its records depend on: which server it is, and what it keeps.

use crate::time::DurationMs;

/// Identity of a store: another value after it may have lost writes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Identity(pub u64);

/// Promise of a store about acknowledged writes, for the time when it comes back as another server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Durability {
    /// No promise: writes of any length of time may be missing.
    #[default]
    Unknown,
    /// Only the writes of this last length of time may be missing.
    LosesAtMost(DurationMs),
    /// No write is missing.
    KeepsAll,
}

impl Durability {
    /// Returns what is certain if both promises were made: nodes may see different settings of one
    /// server.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::KeepsAll, promise) | (promise, Self::KeepsAll) => promise,
            (Self::LosesAtMost(one), Self::LosesAtMost(other)) => Self::LosesAtMost(one.max(other)),
        }
    }
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
    /// Facts of a record that nobody has written: no writer saw a weaker promise.
    pub const UNWRITTEN: Self = Self {
        identity: Identity(0),
        durability: Durability::KeepsAll,
    };

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weaker_of_two_promises_counts() {
        let loses = |millis| Durability::LosesAtMost(DurationMs(millis));
        for (one, other, expected) in [
            (
                Durability::KeepsAll,
                Durability::KeepsAll,
                Durability::KeepsAll,
            ),
            (Durability::KeepsAll, loses(3), loses(3)),
            (loses(3), loses(60), loses(60)),
            (loses(3), Durability::Unknown, Durability::Unknown),
            (
                Durability::KeepsAll,
                Durability::Unknown,
                Durability::Unknown,
            ),
        ] {
            assert_eq!(one.weaker(other), expected);
            assert_eq!(other.weaker(one), expected);
        }
    }
}
