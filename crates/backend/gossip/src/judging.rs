//! A call that is judged by what is known here, and counted at once.
//!
//! The steps are those of stores that can only add ([`anteroom_limit::counters`]); nobody comes
//! between adding and reading, so a call that does not fit is never counted at all.
//!
//! # Clocks
//!
//! A node whose clock is ahead adds to a stretch of time that has not begun here. What is known of
//! such stretches is read, too, as far ahead as [`CLOCKS_APART_MAX`], and a call must fit there as
//! well.

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::shared::SharedAcquire;
use smallvec::SmallVec;

use crate::board::{CounterTable, KEPT_LONGER};
use crate::cell::{Cell, CounterId};
use crate::event_counts::Event;
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

/// What became of one call of several.
struct AcquireOutcome {
    verdict: Verdict,
    /// How the limit stands without it.
    without: Verdict,
    /// To what it was added.
    added: Option<(CounterId, u32)>,
}

/// Under which names a client is counted.
#[derive(Clone, Copy)]
struct ClientNames {
    /// Where his calls are added.
    name: u128,
    /// His crowd's, if what he called before may be counted there.
    crowd: Option<u128>,
}

/// Counters as they were read, newest first.
struct Read {
    place: ClientNames,
    counts: SmallVec<[u32; 8]>,
    /// How many of them have not begun here.
    newer: usize,
}

impl CounterTable {
    /// Charges all of these or none, by algorithms that counters are enough for; the others are
    /// passed over. The verdicts are added in the order of the charges.
    pub(crate) fn charge_all(
        &mut self,
        charges: &[SharedAcquire<'_>],
        now: TimestampUs,
        verdicts: &mut Vec<Verdict>,
    ) {
        if self.is_full() {
            // Whoever is counted with his crowd makes no new place, and so would never make up for
            // one.
            self.sweep(now);
        }
        let mut all: SmallVec<[AcquireOutcome; 4]> = SmallVec::new();
        let mut is_admitted = true;
        for charge in charges {
            let judged = self.judge_one(charge, now, is_admitted);
            is_admitted &= judged.verdict.is_admitted();
            all.push(judged);
        }
        for (charge, judged) in charges.iter().zip(&mut all) {
            match (charge.cost, judged.added) {
                // Refunds are never rejected; they are carried out when it is known that nothing
                // else is.
                (Cost::Refund(back), _) if is_admitted => {
                    judged.verdict = self.refund(charge, back.get(), now);
                }
                (_, Some((id, by))) if !is_admitted => self.undo(id, by),
                (_, Some((id, by))) => self.note_change(id, by),
                _ => {}
            }
        }
        verdicts.extend(all.into_iter().map(|judged| {
            if is_admitted || !judged.verdict.is_admitted() {
                judged.verdict
            } else {
                judged.without
            }
        }));
    }

    fn judge_one(
        &mut self,
        charge: &SharedAcquire<'_>,
        now: TimestampUs,
        is_charged: bool,
    ) -> AcquireOutcome {
        let counters = counters(charge);
        let mut read = self.read(charge, &counters, now);
        let known = &read.counts[read.newer..];
        let before = counters.judge_now(now, Cost::Peek, known);
        let Cost::Take(taken) = charge.cost else {
            return AcquireOutcome {
                // A refund is never rejected, however far over its limit a client is.
                verdict: counters.judge_now(now, charge.cost, known),
                without: before,
                added: None,
            };
        };
        let taken = taken.get();
        let own = read.newer;
        read.counts[own] = read.counts[own].saturating_add(taken);
        let verdict = counters.judge_by_all_clocks(reading(now), charge.cost, &read.counts);
        let added = (is_charged && verdict.is_admitted()).then(|| {
            let ClientNames { name, crowd } = read.place;
            let id = id(name, &counters, counters.index_at(now));
            let me = self.me;
            let cell = self.cell(id, forget_at(&counters, id), crowd.is_some(), now);
            cell.add(me, taken);
            (id, taken)
        });
        AcquireOutcome {
            verdict,
            without: before,
            added,
        }
    }

    /// From the newest counter on, as far as this node has counted there itself.
    fn refund(&mut self, charge: &SharedAcquire<'_>, back: u32, now: TimestampUs) -> Verdict {
        let counters = counters(charge);
        let read = self.read(charge, &counters, now);
        let mut left = back;
        for index in counters.to_read(AddThenRead::at_once(now)) {
            let (id, me) = (id(read.place.name, &counters, index), self.me);
            let Some(cell) = self.cells.get_mut(&id) else {
                continue;
            };
            let given = cell.give_back(me, left);
            left -= given;
            if given > 0 {
                self.note_change(id, given);
            }
        }
        let read = self.read(charge, &counters, now);
        counters.judge_now(now, charge.cost, &read.counts[read.newer..])
    }

    fn read(&self, charge: &SharedAcquire<'_>, counters: &Counters, now: TimestampUs) -> Read {
        let reading = reading(now);
        let place = self.place_for(charge, counters, now);
        let sum = |name: u128, index| {
            let cell = self.cells.get(&id(name, counters, index));
            cell.map_or(0, Cell::sum)
        };
        let count = |index: CounterIndex| {
            let crowd = place.crowd.map_or(0, |crowd| sum(crowd, index));
            sum(place.name, index).saturating_add(crowd)
        };
        Read {
            place,
            newer: counters.not_begun(reading),
            counts: counters.to_read(reading).map(count).collect(),
        }
    }

    /// A client is counted by himself, or with his crowd where there is no place for him.
    fn place_for(
        &self,
        charge: &SharedAcquire<'_>,
        counters: &Counters,
        now: TimestampUs,
    ) -> ClientNames {
        let own = self.names.client(charge.limit, charge.key);
        let alone = ClientNames {
            name: own,
            crowd: None,
        };
        let is_full = self.is_full();
        if !is_full && self.crowds == 0 {
            return alone;
        }
        let newest_of = |name: u128| {
            let mut indexes = counters.to_read(reading(now));
            indexes.find_map(|index| self.cells.get(&id(name, counters, index)))
        };
        let crowd = self.names.crowd(charge.limit, own);
        let beside_crowd = ClientNames {
            name: own,
            crowd: newest_of(crowd).map(|_| crowd),
        };
        let is_overfull = self.cells.len() - self.crowds >= self.cells_max.saturating_mul(2);
        let newest = id(own, counters, counters.index_at(now));
        match newest_of(own) {
            Some(known) if !is_overfull || self.cells.contains_key(&newest) => {
                if known.is_of_crowd {
                    beside_crowd
                } else {
                    alone
                }
            }
            _ if is_full => {
                self.event_counts.count(Event::Crowded);
                ClientNames {
                    name: crowd,
                    crowd: None,
                }
            }
            _ => beside_crowd,
        }
    }

    fn undo(&mut self, id: CounterId, by: u32) {
        let me = self.me;
        if let Some(cell) = self.cells.get_mut(&id) {
            cell.undo_add(me, by);
        }
        // If it was made for this call it takes no place: rejected calls of made-up clients would
        // fill the board.
        self.forget_empty(id);
    }
}

/// The counters of a limit. Whoever is asked for another algorithm has refused it before.
fn counters(charge: &SharedAcquire<'_>) -> Counters {
    let counters = charge.policy.counters();
    counters.expect("limits are checked before they are charged")
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

/// Read as late as any clock may show.
fn reading(now: TimestampUs) -> AddThenRead {
    AddThenRead::ahead(now, CLOCKS_APART_MAX)
}
