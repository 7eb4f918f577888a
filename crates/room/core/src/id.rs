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
