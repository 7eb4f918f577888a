//! Counts of each node by client: counters to which it adds its own requests at once, and reports
//! of others when they arrive.

use std::collections::BTreeMap;

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;

use super::outbox::Increment;

/// Counters of all nodes.
pub(crate) struct NodeCounts {
    counters: Counters,
    counts: BTreeMap<(u32, u32), BTreeMap<CounterIndex, u32>>,
}

impl NodeCounts {
    pub(crate) const fn new(counters: Counters) -> Self {
        Self {
            counters,
            counts: BTreeMap::new(),
        }
    }

    /// Decides a request by its node's counts. Returns the increment to report if it was allowed
    /// and counted.
    pub(crate) fn acquire(
        &mut self,
        node: u32,
        client: u32,
        now: TimestampUs,
    ) -> (Verdict, Option<Increment>) {
        let request = AddThenRead {
            added_at: now,
            read_at: now,
        };
        let counts = self.counts.entry((node, client)).or_default();
        let mut read: Vec<u32> = self
            .counters
            .to_read(request)
            .map(|index| counts.get(&index).copied().unwrap_or(0))
            .collect();
        read[0] = read[0].saturating_add(1);
        let verdict = self.counters.decide(request, Cost::ONE, &read);
        let increment = verdict.is_allowed().then(|| Increment {
            writer: node,
            client,
            index: self.counters.index_at(now),
            requests: 1,
            since: now,
        });
        if let Some(increment) = &increment {
            self.add(node, increment);
            self.forget(node, client, request);
        }
        (verdict, increment)
    }

    /// Adds a reported increment.
    pub(crate) fn add(&mut self, node: u32, increment: &Increment) {
        let counts = self.counts.entry((node, increment.client)).or_default();
        let count = counts.entry(increment.index).or_default();
        *count = count.saturating_add(increment.requests);
    }

    /// Drops counters that no decision reads, when there are as many of them as of the others.
    fn forget(&mut self, node: u32, client: u32, request: AddThenRead) {
        let counts = self.counts.entry((node, client)).or_default();
        if counts.len() > 2 * self.counters.count()
            && let Some(oldest) = self.counters.to_read(request).last()
        {
            *counts = counts.split_off(&oldest);
        }
    }
}
