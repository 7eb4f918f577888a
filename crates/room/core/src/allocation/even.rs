//! Allocation by equal shares: the data center's slots over the nodes there, then the Anywhere
//! slots over all nodes. Each node counts alone. It adds no latency, and queues 20 to 30 % early
//! when traffic is uneven.

use super::{Allocator, AllocatorContext, MinuteBudget, Take};
use crate::rules::Rules;
use crate::statistics::Utilization;

/// Returns how many of `slots` one node may use. Rounds down: the shares must not sum to more.
#[must_use]
pub fn per_node(slots: u32, nodes: u32, _utilization: Utilization, _rules: &Rules) -> u32 {
    slots / nodes.max(1)
}

/// Rule that returns how many slots one node may use.
pub type PerNode = fn(slots: u32, nodes: u32, Utilization, &Rules) -> u32;

/// Allocator that counts locally against a share of the minute's budget.
#[derive(Debug)]
pub struct LocalAllocator {
    per_node: PerNode,
    budget: MinuteBudget,
    used_here: u32,
    used_anywhere: u32,
}

impl LocalAllocator {
    /// Makes an allocator that divides by the given rule.
    #[must_use]
    pub fn new(per_node: PerNode) -> Self {
        Self {
            per_node,
            budget: MinuteBudget::default(),
            used_here: 0,
            used_anywhere: 0,
        }
    }
}

impl Allocator for LocalAllocator {
    fn take(&mut self, context: &mut AllocatorContext<'_>) -> Take {
        let (budget, is_new) = self.budget.of(context);
        if is_new {
            self.used_here = 0;
            self.used_anywhere = 0;
        }
        let share = |slots, nodes| (self.per_node)(slots, nodes, budget.utilization, context.rules);
        let here = share(
            budget.share_of(context.data_center),
            context.statistics.nodes_here,
        );
        let anywhere = share(budget.anywhere, context.statistics.nodes_total);
        if self.used_here < here {
            self.used_here += 1;
            Take::Slot
        } else if self.used_anywhere < anywhere {
            self.used_anywhere += 1;
            Take::Slot
        } else {
            Take::UsedUp
        }
    }
}
