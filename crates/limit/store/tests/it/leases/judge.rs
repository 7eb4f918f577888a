//! Did any window of real time have more calls than were promised?

use std::collections::{BTreeMap, VecDeque};

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::policy::Policy;

/// One client of one limit.
#[derive(Debug)]
pub(crate) struct Judge {
    policy: Policy,
    cost_max: u32,
    spent: VecDeque<(u64, u32)>,
    sum: u64,
    /// Windows by the store's clock, as long as that goes right.
    fixed: BTreeMap<u64, u64>,
    pub(crate) is_clock_right: bool,
    pub(crate) total: u64,
    /// The most that any window had.
    pub(crate) highest: u64,
}

impl Judge {
    pub(crate) fn new(policy: Policy, cost_max: u32) -> Self {
        Self {
            policy,
            cost_max,
            spent: VecDeque::new(),
            sum: 0,
            fixed: BTreeMap::new(),
            is_clock_right: true,
            total: 0,
            highest: 0,
        }
    }

    /// Calls are admitted.
    pub(crate) fn spend(&mut self, real: u64, calls: u32) {
        let window = self.policy.rate().window().0;
        self.total += u64::from(calls);
        self.sum += u64::from(calls);
        self.spent.push_back((real, calls));
        while let Some((at, calls)) = self.spent.front().copied()
            && at + window <= real
        {
            self.sum -= u64::from(calls);
            self.spent.pop_front();
        }
        self.highest = self.highest.max(self.sum);
        let most = self.policy.most_in_any_window(self.cost_max);
        let (sum, policy) = (self.sum, self.policy);
        assert!(sum <= most, "{sum} in a window, not {most}: {policy:?}");
        if matches!(self.policy, Policy::FixedWindow(_)) && self.is_clock_right {
            let count = self.fixed.entry(real / window).or_default();
            *count += u64::from(calls);
            let most = u64::from(self.policy.rate().calls());
            assert!(*count <= most, "{count} in one window, not {most}");
        }
    }
}
