//! Allocation by shared counters: one for each data center and minute, then one for all data
//! centers.
//!
//! A node fetches the number first and compares it afterwards. Numbers count from 0: with 10 slots
//! number 9 enters, number 10 does not. The result is as right as the snapshot is fresh, and costs
//! a round trip for each new visitor.

use super::{Allocator, AllocatorContext, CounterKey, CounterScope, MinuteBudget, Take};

/// Allocator that tries the counters in turn, and skips those that are used up.
#[derive(Debug, Default)]
pub struct CounterAllocator {
    budget: MinuteBudget,
    is_data_center_used_up: bool,
    is_anywhere_used_up: bool,
}

impl CounterAllocator {
    /// Compares a number with the slots of its counter. Returns `false` if this counter has no more
    /// slots, or gave no number; the next [`Allocator::take`] tries the next counter.
    pub fn handle_number(&mut self, key: CounterKey, number: Option<u64>) -> bool {
        let Some(budget) = self.budget.fixed.as_ref() else {
            return false;
        };
        if budget.minute != key.minute {
            return false;
        }
        let (slots, is_used_up) = match key.scope {
            CounterScope::DataCenter(id) => (budget.share_of(id), &mut self.is_data_center_used_up),
            CounterScope::Anywhere => (budget.anywhere, &mut self.is_anywhere_used_up),
        };
        let is_slot = number.is_some_and(|number| number < u64::from(slots));
        *is_used_up |= !is_slot;
        is_slot
    }
}

impl Allocator for CounterAllocator {
    fn take(&mut self, context: &mut AllocatorContext<'_>) -> Take {
        let (budget, is_new) = self.budget.of(context);
        let minute = budget.minute;
        if is_new {
            self.is_data_center_used_up = budget.share_of(context.data_center) == 0;
            self.is_anywhere_used_up = budget.anywhere == 0;
        }
        let scope = if !self.is_data_center_used_up {
            CounterScope::DataCenter(context.data_center)
        } else if !self.is_anywhere_used_up {
            CounterScope::Anywhere
        } else {
            return Take::UsedUp;
        };
        Take::TakeNumber(CounterKey { scope, minute })
    }
}
