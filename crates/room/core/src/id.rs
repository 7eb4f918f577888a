//! Identifiers that travel in tickets, ledgers and rows.
//!
//! All of them are opaque; none is derived from data of a visitor.

/// Identifier of a visitor: 128 random bits, known only from its ticket.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct VisitorId(pub [u8; 16]);

/// Identifier of one start of a node: random each time, so that a restart never continues an old
/// row.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub u64);

/// Identifier of a data center: the first four bytes of a digest of its name.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DataCenterId(pub u32);

/// Identifier of a deployment: drawn at the first start and kept. A ticket of another deployment is
/// not valid here.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeploymentId(pub u64);

/// Incarnation of a ledger's record: drawn whenever a store begins a record, so that a new record
/// is never taken for a lost one.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Incarnation(pub u64);

/// Incarnation of the root's ledger, as tickets carry it. A ticket of another epoch proves that the
/// ledger lost its memory; see [`crate::ledger`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Epoch(pub u32);

impl Epoch {
    /// Epoch of [`Incarnation::ALONE`].
    pub const ALONE: Self = Incarnation::ALONE.epoch();
}

impl Incarnation {
    /// Incarnation of a ledger in the journal of one process, which never has two children at the
    /// same time.
    pub const ALONE: Self = Self(0);

    /// Bits of the ordinal, at the top of the number; the others are random.
    const ORDINAL_BITS: u32 = 16;

    /// Makes an incarnation of a record that is not known to follow another, from a random number.
    #[must_use]
    pub const fn first(random: u64) -> Self {
        Self(random >> Self::ORDINAL_BITS)
    }

    /// Returns the incarnation that follows this one. The same `cause`, such as the identity of a
    /// store, leads to the same incarnation, so that two nodes that begin it at once agree.
    #[must_use]
    pub const fn next(self, cause: u64) -> Self {
        let mixed = self.0.rotate_left(23) ^ cause.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let ordinal = self.ordinal().saturating_add(1);
        Self(((ordinal as u64) << (u64::BITS - Self::ORDINAL_BITS)) | (mixed >> Self::ORDINAL_BITS))
    }

    /// Returns the position among the incarnations of a record: a later one has a larger ordinal.
    #[must_use]
    pub const fn ordinal(self) -> u16 {
        (self.0 >> (u64::BITS - Self::ORDINAL_BITS)) as u16
    }

    /// Returns the part that tickets carry.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "half of a random number is a random number"
    )]
    pub const fn epoch(self) -> Epoch {
        Epoch(self.0 as u32)
    }
}
