//! How are slots shared among nodes? Four ways behind one interface.
//!
//! | till | gives | known flaw |
//! | --- | --- | --- |
//! | [`even`] | every node the same part of the minute's budget | queues early on uneven traffic |
//! | [`curve`] | more than that while the room is far from its limit | overshoots on a spike |
//! | [`counters`] | numbers from shared counters | a round trip for each new visitor |
//! | [`leases`] | slots lent ahead of demand | the protocol must be right |
//!
//! A till never waits: where a number or a grant has to come from elsewhere it says so, and the
//! caller brings it.

pub mod counters;
pub mod curve;
pub mod even;
pub mod leases;

use crate::id::DataCenterId;
use crate::lease::Lease;
use crate::rules::{AllocationKind, Rules};
use crate::statistics::{Budget, RoomStatistics};
use crate::time::{Minute, Timestamp};

/// Hands out slots, one at a time, never the same one twice.
pub trait Allocator {
    /// Asks for one slot.
    fn take(&mut self, context: &mut AllocatorContext<'_>) -> Take;
}

/// What a till may look at, and the lease it may take from.
#[derive(Debug)]
pub struct AllocatorContext<'a> {
    /// The room's rules.
    pub rules: &'a Rules,
    /// The statistics, as fresh as they are here.
    pub statistics: &'a RoomStatistics,
    /// This node's data center.
    pub data_center: DataCenterId,
    /// What was lent to this node.
    pub lease: &'a mut Lease,
    /// Now.
    pub now: Timestamp,
}

/// What a till answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Take {
    /// A slot.
    Slot,
    /// None here; the parent may have one.
    AskParent,
    /// The next number of this counter decides.
    TakeNumber(CounterKey),
    /// None.
    Dry,
}

/// A shared counter: one in each data center and minute, then one in the world.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CounterKey {
    /// Where.
    pub scope: CounterScope,
    /// Of which minute.
    pub minute: Minute,
}

/// Where a counter counts.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CounterScope {
    /// In one data center.
    DataCenter(DataCenterId),
    /// In the world.
    Anywhere,
}

/// The till of a room.
#[derive(Debug)]
pub enum AnyAllocator {
    /// [`even`] and [`curve`]: a local count against a local part.
    Local(even::LocalAllocator),
    /// [`counters`].
    Counters(counters::CounterAllocator),
    /// [`leases`].
    Leases(leases::LeaseAllocator),
}

impl AnyAllocator {
    /// The till for a kind of allocation.
    #[must_use]
    pub fn new(kind: AllocationKind) -> Self {
        match kind {
            AllocationKind::Even => Self::Local(even::LocalAllocator::new(even::per_node)),
            AllocationKind::Curve => Self::Local(even::LocalAllocator::new(curve::per_node)),
            AllocationKind::Counters => Self::Counters(counters::CounterAllocator::default()),
            AllocationKind::Leases => Self::Leases(leases::LeaseAllocator),
        }
    }
}

impl Allocator for AnyAllocator {
    fn take(&mut self, context: &mut AllocatorContext<'_>) -> Take {
        match self {
            Self::Local(allocator) => allocator.take(context),
            Self::Counters(allocator) => allocator.take(context),
            Self::Leases(allocator) => allocator.take(context),
        }
    }
}

/// The budget of the running minute, fixed by the first snapshot used in it.
#[derive(Debug, Default)]
struct MinuteBudget {
    fixed: Option<Budget>,
}

impl MinuteBudget {
    /// The budget, and whether the minute is a new one.
    fn of(&mut self, context: &AllocatorContext<'_>) -> (&Budget, bool) {
        let minute = context.now.minute();
        let is_new = self
            .fixed
            .as_ref()
            .is_none_or(|budget| budget.minute != minute);
        if is_new {
            self.fixed = None;
        }
        let budget = self.fixed.get_or_insert_with(|| Budget {
            minute,
            ..Budget::of(context.statistics, context.rules.limits)
        });
        (budget, is_new)
    }
}
