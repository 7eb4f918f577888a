//! Allocation by leases: the parent grants slots to this node ahead of demand, and a visitor takes
//! one without a round trip. Never above a limit, and close to it; see [`crate::lease`] and
//! [`crate::ledger`].

use super::{Allocator, AllocatorContext, Take};

/// Allocator that takes from the lease.
#[derive(Debug, Default)]
pub struct LeaseAllocator;

impl Allocator for LeaseAllocator {
    fn take(&mut self, context: &mut AllocatorContext<'_>) -> Take {
        match context.lease.take_slot(context.now) {
            Ok(()) => Take::Slot,
            Err(_) => Take::SyncWithParent,
        }
    }
}
