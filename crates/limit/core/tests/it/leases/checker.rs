//! Checker: no window of real time has more requests than promised.
//!
//! - While nodes have different limits, and for one lease after that, the highest promise counts.
//!   For buckets that is one with the largest burst and the highest rate.
//! - Where the store's clock was set forward, leases expire that much earlier. Twice as many may
//!   pass around that time, as with any limit that follows that clock.
//! - Fixed windows promise a number for each window of the store's clock; not checked where the
//!   clock was stepped.

use std::collections::{BTreeMap, VecDeque};

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::leases::widened::TTL_LONGEST;
use anteroom_limit::policy::Policy;

#[derive(Default)]
pub(crate) struct Checker {
    /// Time and requests.
    spent: VecDeque<(u64, u32)>,
    sum: u64,
    /// Limits in force at any node, and until when.
    limits: Vec<(Policy, u64)>,
    stepped_forward_at: Option<u64>,
    fixed: BTreeMap<u64, u64>,
    pub(crate) total: u64,
}

impl Checker {
    /// Records that a node follows this limit from now on.
    pub(crate) fn begin(&mut self, policy: Policy) {
        self.limits.push((policy, u64::MAX));
    }

    /// Records that a node has followed this limit until now.
    pub(crate) fn end(&mut self, real: u64, policy: Policy) {
        let mut limits = self.limits.iter_mut();
        let one = limits.find(|(one, until)| *one == policy && *until == u64::MAX);
        one.expect("`begin` recorded it").1 = real;
    }

    pub(crate) fn step_forward(&mut self, real: u64) {
        self.stepped_forward_at = Some(real);
    }

    pub(crate) fn spend(&mut self, real: u64, calls: u32) -> Result<(), String> {
        self.total += u64::from(calls);
        let window = self.limits[0].0.rate().window().0;
        self.spent.push_back((real, calls));
        self.sum += u64::from(calls);
        while let Some((at, calls)) = self.spent.front().copied()
            && at + window <= real
        {
            self.sum -= u64::from(calls);
            self.spent.pop_front();
        }
        let since = real.saturating_sub(window + TTL_LONGEST.0);
        self.limits.retain(|(_, until)| *until >= since);
        if matches!(self.limits[0].0, Policy::FixedWindow(_)) {
            return self.spend_fixed(real / window, calls);
        }
        let mut most = self.most();
        if self.stepped_forward_at.is_some_and(|at| at >= since) {
            most *= 2;
        }
        if self.sum > most {
            return Err(format!(
                "{} requests in a window at {real}, limit {most}",
                self.sum
            ));
        }
        Ok(())
    }

    /// Returns the highest promise. For buckets it combines the largest burst and the highest rate:
    /// tokens may arrive at one rate and leave at another.
    fn most(&self) -> u64 {
        let limits = || self.limits.iter().map(|(policy, _)| *policy);
        let alone = limits().map(|policy| policy.window_cost_max(1)).max();
        let rate = |policy: Policy| burst(policy).map(|_| policy.rate().requests());
        let (burst, rate) = (
            limits().filter_map(burst).max(),
            limits().filter_map(rate).max(),
        );
        let together = burst
            .zip(rate)
            .map(|(burst, rate)| u64::from(burst + rate) - 1);
        alone.max(together).unwrap_or(0)
    }

    /// Discounts requests that were undone.
    pub(crate) fn undo(&mut self, real: u64, calls: u32) {
        let window = self.limits[0].0.rate().window().0;
        if let Some(sum) = self.fixed.get_mut(&(real / window)) {
            *sum -= u64::from(calls);
        }
        let mut spent = self.spent.iter_mut();
        if let Some(one) = spent.find(|one| one.0 == real && one.1 == calls) {
            one.1 -= calls;
            self.sum -= u64::from(calls);
        }
    }

    fn spend_fixed(&mut self, index: u64, calls: u32) -> Result<(), String> {
        let limits = self.limits.iter();
        let most = limits
            .map(|(policy, _)| u64::from(policy.rate().requests()))
            .max();
        let sum = self.fixed.entry(index).or_default();
        *sum += u64::from(calls);
        if *sum > most.unwrap_or(0) {
            return Err(format!("{sum} requests in window {index}, limit {most:?}"));
        }
        Ok(())
    }
}

fn burst(policy: Policy) -> Option<u32> {
    match policy {
        Policy::TokenBucket(bucket) => Some(bucket.initial_burst()),
        Policy::Gcra(gcra) => Some(gcra.burst()),
        _ => None,
    }
}
