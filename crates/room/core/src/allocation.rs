//! Allocators: four ways to share slots among nodes, behind one interface.
//!
//! | allocator | gives | known flaw |
//! | --- | --- | --- |
//! | [`even`] | every node the same part of the minute's budget | queues early on uneven traffic |
//! | [`curve`] | more than that while the room is far from its limit | overshoots on a spike |
//! | [`counters`] | numbers from shared counters | a round trip for each new visitor |
//! | [`leases`] | slots that the parent grants ahead of demand | the protocol must be right |
//!
//! An allocator never waits. Where it needs a number or a grant it says so, and the caller fetches
//! it.

pub mod counters;
pub mod curve;
pub mod even;
pub mod leases;

use crate::id::DataCenterId;
use crate::lease::Lease;
use crate::rules::{AllocationKind, Rules};
use crate::statistics::{Budget, RoomStatistics};
use crate::time::{Minute, Timestamp};

/// Allocator of slots: hands them out one at a time, never the same one twice.
pub trait Allocator {
    /// Takes one slot.
    fn take(&mut self, context: &mut AllocatorContext<'_>) -> Take;
}

/// Input of an allocator, and the lease that it may take from.
#[derive(Debug)]
pub struct AllocatorContext<'a> {
    /// The room's rules.
    pub rules: &'a Rules,
    /// The newest statistics at this node.
    pub statistics: &'a RoomStatistics,
    /// This node's data center.
    pub data_center: DataCenterId,
    /// The lease of this node.
    pub lease: &'a mut Lease,
    /// Present time, room clock.
    pub now: Timestamp,
}

/// Result of [`Allocator::take`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Take {
    /// One slot.
    Slot,
    /// Empty lease; the parent may have one.
    SyncWithParent,
    /// The next number of this counter decides: the caller fetches it.
    TakeNumber(CounterKey),
    /// Empty until the next minute.
    UsedUp,
}

/// Key of a shared counter: one in each data center and minute, then one for all data centers.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CounterKey {
    /// Nodes that share the counter.
    pub scope: CounterScope,
    /// Minute that it counts.
    pub minute: Minute,
}

/// Nodes that share a counter.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CounterScope {
    /// Nodes of one data center.
    DataCenter(DataCenterId),
    /// Nodes of all data centers.
    Anywhere,
}

/// Allocator of a room, by the kind in its rules.
#[derive(Debug)]
pub enum AnyAllocator {
    /// [`even`] and [`curve`]: a local count against a local share.
    Local(even::LocalAllocator),
    /// [`counters`].
    Counters(counters::CounterAllocator),
    /// [`leases`].
    Leases(leases::LeaseAllocator),
}

impl AnyAllocator {
    /// Returns the allocator of this kind.
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

/// Budget of the running minute, fixed by the first snapshot used in it.
#[derive(Debug, Default)]
struct MinuteBudget {
    fixed: Option<Budget>,
}

impl MinuteBudget {
    /// Returns the budget, and whether the minute is a new one.
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
