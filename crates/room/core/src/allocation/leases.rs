//! Slots are lent to this node ahead of demand: one is taken from the lease, without asking
//! anybody. Never above a limit, and close to it; see [`crate::lease`] and [`crate::ledger`].

use super::{Allocator, AllocatorContext, Take};

/// Takes from the lease.
#[derive(Debug, Default)]
pub struct LeaseAllocator;

impl Allocator for LeaseAllocator {
    fn take(&mut self, context: &mut AllocatorContext<'_>) -> Take {
        match context.lease.take_slot(context.now) {
            Ok(()) => Take::Slot,
            Err(_) => Take::AskParent,
        }
    }
}
