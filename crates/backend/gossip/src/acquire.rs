//! Decides a request by the counters known here, and counts it at once.
//!
//! The steps are those of stores that can only add ([`anteroom_limit::counters`]). Nothing comes
//! between adding and reading, so a rejected request is never counted.
//!
//! # Clocks
//!
//! A node whose clock is ahead adds to a sub-window that has not begun here. Sub-windows as far
//! ahead as [`CLOCKS_APART_MAX`] are read, too, and a request must fit there as well.

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::shared::SharedAcquire;
use smallvec::SmallVec;

use crate::cell::{Cell, CounterId};
use crate::counter_table::{CounterTable, KEPT_LONGER};
use crate::event_counts::Event;
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

/// Result of one acquire of several.
struct AcquireOutcome {
    verdict: Verdict,
    /// State of the limit without it.
    without: Verdict,
    /// Counter that it was added to, and its cost.
    added: Option<(CounterId, u32)>,
}

/// Names under which a client is counted.
#[derive(Clone, Copy)]
struct ClientNames {
    /// Name to which the client's requests are added.
    name: u128,
    /// Name of the client's overflow entry, if earlier requests may be counted there.
    overflow: Option<u128>,
}

/// Counters of a client, newest first.
struct Read {
    names: ClientNames,
    counts: SmallVec<[u32; 8]>,
    /// Number of them that have not begun here.
    newer: usize,
}

impl CounterTable {
    /// Acquires all of these or none, for algorithms that need counters only; others are skipped.
    /// Verdicts are appended in the order of `acquires`.
    pub(crate) fn acquire_all(
        &mut self,
        acquires: &[SharedAcquire<'_>],
        now: TimestampUs,
        verdicts: &mut Vec<Verdict>,
    ) {
        if self.is_full() {
            // A client in an overflow entry creates no counter, so it would never trigger a sweep.
            self.sweep(now);
        }
        let mut outcomes: SmallVec<[AcquireOutcome; 4]> = SmallVec::new();
        let mut is_admitted = true;
        for acquire in acquires {
            let outcome = self.decide_one(acquire, now, is_admitted);
            is_admitted &= outcome.verdict.is_allowed();
            outcomes.push(outcome);
        }
        for (acquire, outcome) in acquires.iter().zip(&mut outcomes) {
            match (acquire.cost, outcome.added) {
                // Refunds are never rejected. They are carried out once it is clear that nothing
                // else is rejected.
                (Cost::Refund(refunded), _) if is_admitted => {
                    outcome.verdict = self.refund(acquire, refunded.get(), now);
                }
                (_, Some((id, by))) if !is_admitted => self.undo(id, by),
                (_, Some((id, by))) => self.note_change(id, by),
                _ => {}
            }
        }
        verdicts.extend(outcomes.into_iter().map(|outcome| {
            if is_admitted || !outcome.verdict.is_allowed() {
                outcome.verdict
            } else {
                outcome.without
            }
        }));
    }

    fn decide_one(
        &mut self,
        acquire: &SharedAcquire<'_>,
        now: TimestampUs,
        is_acquired: bool,
    ) -> AcquireOutcome {
        let counters = counters(acquire);
        let mut read = self.read(acquire, &counters, now);
        let known = &read.counts[read.newer..];
        let before = counters.decide_now(now, Cost::Peek, known);
        let Cost::Take(taken) = acquire.cost else {
            return AcquireOutcome {
                // A refund is never rejected, even if the client is far over its limit.
                verdict: counters.decide_now(now, acquire.cost, known),
                without: before,
                added: None,
            };
        };
        let taken = taken.get();
        let own = read.newer;
        read.counts[own] = read.counts[own].saturating_add(taken);
        let verdict = counters.decide_by_all_clocks(reading(now), acquire.cost, &read.counts);
        let added = (is_acquired && verdict.is_allowed()).then(|| {
            let ClientNames { name, overflow } = read.names;
            let id = id(name, &counters, counters.index_at(now));
            let me = self.me;
            let cell = self.cell(id, forget_at(&counters, id), overflow.is_some(), now);
            cell.add(me, taken);
            (id, taken)
        });
        AcquireOutcome {
            verdict,
            without: before,
            added,
        }
    }

    /// Refunds from the newest counter on, as far as this node has counted there itself.
    fn refund(&mut self, acquire: &SharedAcquire<'_>, refunded: u32, now: TimestampUs) -> Verdict {
        let counters = counters(acquire);
        let read = self.read(acquire, &counters, now);
        let mut left = refunded;
        for index in counters.to_read(AddThenRead::at_once(now)) {
            let (id, me) = (id(read.names.name, &counters, index), self.me);
            let Some(cell) = self.cells.get_mut(&id) else {
                continue;
            };
            let given = cell.refund(me, left);
            left -= given;
            if given > 0 {
                self.note_change(id, given);
            }
        }
        let read = self.read(acquire, &counters, now);
        counters.decide_now(now, acquire.cost, &read.counts[read.newer..])
    }

    fn read(&self, acquire: &SharedAcquire<'_>, counters: &Counters, now: TimestampUs) -> Read {
        let reading = reading(now);
        let names = self.names_for(acquire, counters, now);
        let sum = |name: u128, index| {
            let cell = self.cells.get(&id(name, counters, index));
            cell.map_or(0, Cell::sum)
        };
        let count = |index: CounterIndex| {
            let overflow = names.overflow.map_or(0, |overflow| sum(overflow, index));
            sum(names.name, index).saturating_add(overflow)
        };
        Read {
            names,
            newer: counters.not_begun(reading),
            counts: counters.to_read(reading).map(count).collect(),
        }
    }

    /// Returns the names under which a client is counted: its own, or its overflow entry's if the
    /// table is full.
    fn names_for(
        &self,
        acquire: &SharedAcquire<'_>,
        counters: &Counters,
        now: TimestampUs,
    ) -> ClientNames {
        let own = self.names.client(acquire.limit, acquire.key);
        let own_names = ClientNames {
            name: own,
            overflow: None,
        };
        let is_full = self.is_full();
        if !is_full && self.overflow_count == 0 {
            return own_names;
        }
        let newest_of = |name: u128| {
            let mut indexes = counters.to_read(reading(now));
            indexes.find_map(|index| self.cells.get(&id(name, counters, index)))
        };
        let overflow = self.names.overflow(acquire.limit, own);
        let both_names = ClientNames {
            name: own,
            overflow: newest_of(overflow).map(|_| overflow),
        };
        let own_counters = self.cells.len() - self.overflow_count;
        let is_overfull = own_counters >= self.cells_max.saturating_mul(2);
        let newest = id(own, counters, counters.index_at(now));
        match newest_of(own) {
            Some(known) if !is_overfull || self.cells.contains_key(&newest) => {
                if known.may_be_in_overflow {
                    both_names
                } else {
                    own_names
                }
            }
            _ if is_full => {
                self.event_counts.count(Event::Overflow);
                ClientNames {
                    name: overflow,
                    overflow: None,
                }
            }
            _ => both_names,
        }
    }

    fn undo(&mut self, id: CounterId, by: u32) {
        let me = self.me;
        if let Some(cell) = self.cells.get_mut(&id) {
            cell.undo_add(me, by);
        }
        // A counter that was created for this request is removed: rejected requests of made-up
        // clients would fill the table.
        self.forget_empty(id);
    }
}

/// Returns the counters of a limit. Limits of other algorithms are rejected before.
fn counters(acquire: &SharedAcquire<'_>) -> Counters {
    let counters = acquire.policy.counters();
    counters.expect("limits are checked before a request acquires from them")
}

fn id(name: u128, counters: &Counters, index: CounterIndex) -> CounterId {
    CounterId {
        name,
        width: counters.width().0,
        index: index.0,
    }
}

fn forget_at(counters: &Counters, id: CounterId) -> TimestampUs {
    counters.ends_at(CounterIndex(id.index)) + KEPT_LONGER
}

/// Reads as far ahead as any peer's clock may be.
fn reading(now: TimestampUs) -> AddThenRead {
    AddThenRead::ahead(now, CLOCKS_APART_MAX)
}
