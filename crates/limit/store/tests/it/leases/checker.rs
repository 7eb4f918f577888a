//! Checker that no window of real time has more requests than the limit promises.

use std::collections::{BTreeMap, VecDeque};

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::policy::Policy;

/// Checker of one client of one limit.
#[derive(Debug)]
pub(crate) struct Checker {
    policy: Policy,
    cost_max: u32,
    spent: VecDeque<(u64, u32)>,
    sum: u64,
    /// Requests by window of the store's clock; checked as long as that clock is right.
    fixed: BTreeMap<u64, u64>,
    pub(crate) is_clock_right: bool,
    pub(crate) total: u64,
    /// Largest count in any window.
    pub(crate) highest: u64,
}

impl Checker {
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

    /// Records an admitted cost, and checks the windows that it is in.
    pub(crate) fn spend(&mut self, real: u64, cost: u32) {
        let window = self.policy.rate().window().0;
        self.total += u64::from(cost);
        self.sum += u64::from(cost);
        self.spent.push_back((real, cost));
        while let Some((at, cost)) = self.spent.front().copied()
            && at + window <= real
        {
            self.sum -= u64::from(cost);
            self.spent.pop_front();
        }
        self.highest = self.highest.max(self.sum);
        let most = self.policy.window_cost_max(self.cost_max);
        let (sum, policy) = (self.sum, self.policy);
        assert!(sum <= most, "{sum} in a window, not {most}: {policy:?}");
        if matches!(self.policy, Policy::FixedWindow(_)) && self.is_clock_right {
            let count = self.fixed.entry(real / window).or_default();
            *count += u64::from(cost);
            let most = u64::from(self.policy.rate().requests());
            assert!(*count <= most, "{count} in one window, not {most}");
        }
    }
}
