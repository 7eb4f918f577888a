//! Shared counters hand out numbers: one counter for each data center and minute, then one for the
//! world. The value is received first and compared afterwards: 9 of 10 goes in, 10 of 10 does not.
//! Right as far as the snapshot is fresh; costs a round trip for each new visitor.

use super::{Allocator, AllocatorContext, CounterKey, CounterScope, MinuteBudget, Take};

/// Asks counters in turn; remembers which ones are used up so that they are not asked again.
#[derive(Debug, Default)]
pub struct CounterAllocator {
    budget: MinuteBudget,
    is_data_center_dry: bool,
    is_anywhere_dry: bool,
}

impl CounterAllocator {
    /// Compares a number that was received with the slots of its counter. `false` means that this
    /// counter has no more, or gave no number; the next [`Allocator::take`] asks the next one.
    pub fn handle_number(&mut self, key: CounterKey, number: Option<u64>) -> bool {
        let Some(budget) = self.budget.fixed.as_ref() else {
            return false;
        };
        if budget.minute != key.minute {
            return false;
        }
        let (slots, is_dry) = match key.scope {
            CounterScope::DataCenter(id) => (budget.share_of(id), &mut self.is_data_center_dry),
            CounterScope::Anywhere => (budget.anywhere, &mut self.is_anywhere_dry),
        };
        let is_slot = number.is_some_and(|number| number < u64::from(slots));
        *is_dry |= !is_slot;
        is_slot
    }
}

impl Allocator for CounterAllocator {
    fn take(&mut self, context: &mut AllocatorContext<'_>) -> Take {
        let (budget, is_new) = self.budget.of(context);
        let minute = budget.minute;
        if is_new {
            self.is_data_center_dry = budget.share_of(context.data_center) == 0;
            self.is_anywhere_dry = budget.anywhere == 0;
        }
        let scope = if !self.is_data_center_dry {
            CounterScope::DataCenter(context.data_center)
        } else if !self.is_anywhere_dry {
            CounterScope::Anywhere
        } else {
            return Take::Dry;
        };
        Take::TakeNumber(CounterKey { scope, minute })
    }
}
