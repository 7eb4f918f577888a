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
pub struct BirthId(pub u64);

/// How often a ledger has lost its memory; see [`crate::ledger`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Epoch(pub u32);
