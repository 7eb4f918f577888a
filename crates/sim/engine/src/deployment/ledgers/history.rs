//! Past states of a record, for replicas that lack the last writes.

use std::collections::VecDeque;

use anteroom_room::ledger::Ledger;
use anteroom_room::time::{DurationMs, Timestamp};

use crate::scenario::model::{FaultKind, Scenario, StoreRef};

/// Copies of a record at intervals.
#[derive(Debug)]
pub(super) struct History {
    every: DurationMs,
    keep: DurationMs,
    records: VecDeque<(Timestamp, Ledger)>,
}

impl History {
    /// Returns a history for a store that will lose writes, and `None` for every other one. A
    /// deployment with one store uses it as local and global store.
    pub(super) fn of(scenario: &Scenario, place: StoreRef, is_only: bool) -> Option<Self> {
        let losses = scenario.faults.iter().filter_map(|fault| match fault.kind {
            FaultKind::StoreLosesWrites { store, last } if store == place || is_only => Some(last),
            _ => None,
        });
        let keep = losses.max()?;
        Some(Self {
            // Sixteen steps lose about as much as the scenario requests.
            every: DurationMs(keep.0 / 16),
            keep,
            records: VecDeque::new(),
        })
    }

    pub(super) fn note(&mut self, ledger: &Ledger, now: Timestamp) {
        let newest = self.records.back().map(|(at, _)| *at);
        if newest.is_some_and(|at| now.since(at) < self.every) {
            return;
        }
        self.records.push_back((now, ledger.clone()));
        // Keep one record older than the longest loss.
        while self.records.len() > 1 && now.since(self.records[1].0) > self.keep {
            self.records.pop_front();
        }
    }

    /// Returns the newest record that is not newer than `at`, or the oldest one, and drops the
    /// newer ones.
    pub(super) fn before(&mut self, at: Timestamp) -> Option<Ledger> {
        while self.records.len() > 1 && self.records.back().is_some_and(|(t, _)| *t > at) {
            self.records.pop_back();
        }
        self.records.back().map(|(_, ledger)| ledger.clone())
    }
}
