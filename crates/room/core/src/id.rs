//! Who is who: the identifiers that travel in tickets, ledgers and rows.
//!
//! All of them are opaque; none is derived from anything a visitor tells about itself.

/// A visitor: 128 random bits, known only from its ticket.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct VisitorId(pub [u8; 16]);

/// One life of a node: random at every start, so that a restart never continues an old row.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub u64);

/// A data center, by the first four bytes of a digest of its name.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DataCenterId(pub u32);

/// A deployment: random at the first start and kept from then on. A ticket of another birth is
/// no ticket here.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeploymentId(pub u64);

/// One life of a ledger's record: random whenever a store begins one, so that nobody takes a
/// record for one that was lost.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Incarnation(pub u64);

/// The life of the ledger at the root, as it is written into tickets. A ticket of another epoch
/// is a witness that the ledger has lost its memory; see the core's `ledger`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Epoch(pub u32);

impl Epoch {
    /// That of [`Incarnation::ALONE`].
    pub const ALONE: Self = Incarnation::ALONE.epoch();
}

impl Incarnation {
    /// Of a ledger in the journal of one process: it has never known, and will never know, a child
    /// that runs beside another one.
    pub const ALONE: Self = Self(0);

    /// What of it is written into tickets.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "half of a random number is a random number"
    )]
    pub const fn epoch(self) -> Epoch {
        Epoch(self.0 as u32)
    }
}
