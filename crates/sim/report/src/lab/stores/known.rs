//! What does each node know of each client? Counters of its own, to which it adds what it admits at
//! once, and to which it adds what others told.

use std::collections::BTreeMap;

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;

use super::news::News;

/// The counters of all nodes.
pub(crate) struct Known {
    counters: Counters,
    counts: BTreeMap<(u32, u32), BTreeMap<CounterIndex, u32>>,
}

impl Known {
    pub(crate) const fn new(counters: Counters) -> Self {
        Self {
            counters,
            counts: BTreeMap::new(),
        }
    }

    /// Decides a call by what its node knows, and counts it there if it is admitted: what is to be
    /// told of it then.
    pub(crate) fn charge(
        &mut self,
        node: u32,
        client: u32,
        now: TimestampUs,
    ) -> (Verdict, Option<News>) {
        let call = AddThenRead {
            added_at: now,
            read_at: now,
        };
        let counts = self.counts.entry((node, client)).or_default();
        let mut read: Vec<u32> = self
            .counters
            .to_read(call)
            .map(|index| counts.get(&index).copied().unwrap_or(0))
            .collect();
        read[0] = read[0].saturating_add(1);
        let verdict = self.counters.judge(call, Cost::ONE, &read);
        let news = verdict.is_admitted().then(|| News {
            writer: node,
            client,
            index: self.counters.index_at(now),
            calls: 1,
            since: now,
        });
        if let Some(news) = &news {
            self.hear(node, news);
            self.forget(node, client, call);
        }
        (verdict, news)
    }

    /// Adds what a node is told.
    pub(crate) fn hear(&mut self, node: u32, news: &News) {
        let counts = self.counts.entry((node, news.client)).or_default();
        let count = counts.entry(news.index).or_default();
        *count = count.saturating_add(news.calls);
    }

    /// Drops what nobody reads any more, when there is as much of it as of the rest.
    fn forget(&mut self, node: u32, client: u32, call: AddThenRead) {
        let counts = self.counts.entry((node, client)).or_default();
        if counts.len() > 2 * self.counters.count()
            && let Some(oldest) = self.counters.to_read(call).last()
        {
            *counts = counts.split_off(&oldest);
        }
    }
}
