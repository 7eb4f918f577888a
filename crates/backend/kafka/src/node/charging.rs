//! A call against several limits, decided by what is known here.
//!
//! All of it happens in one piece, so of the calls of one node each sees all before it: alone, a
//! node admits exactly what the algorithm does.

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::shared::SharedAcquire;

use super::Node;
use crate::names;
use crate::stats::{Name, SlotId};

/// One limit, and where its client is counted.
struct LimitClient {
    counters: Counters,
    /// Newest first.
    indexes: Vec<CounterIndex>,
    own: Name,
    /// Where it is counted as well if there is no place for it, or was none a while ago.
    crowd: Option<Name>,
    /// Under which name it is counted from now on.
    name: Name,
}

impl LimitClient {
    fn slot(&self, name: Name, index: CounterIndex) -> SlotId {
        let index = index.0;
        SlotId { name, index }
    }

    fn until(&self, index: CounterIndex) -> TimestampUs {
        self.counters.ends_at(index)
    }
}

impl Node {
    /// Charges several limits, or none of them, and adds a verdict for each. `false`, and nothing
    /// was done, if one of them cannot be counted in stretches of time.
    pub(crate) fn charge(
        &mut self,
        charges: &[SharedAcquire<'_>],
        now: TimestampUs,
        verdicts: &mut Vec<Verdict>,
    ) -> bool {
        let places = charges.iter().map(|charge| self.place(charge, now));
        let Some(places) = places.collect::<Option<Vec<LimitClient>>>() else {
            return false;
        };
        let first = verdicts.len();
        let mut charged = 0;
        for (charge, place) in charges.iter().zip(&places) {
            let verdict = self.take(place, charge.cost, now);
            verdicts.push(verdict);
            if !verdict.is_admitted() {
                break;
            }
            charged += 1;
        }
        if charged == charges.len() {
            for (at, charge) in charges.iter().enumerate() {
                match charge.cost {
                    Cost::Take(_) => self.board.tell(newest(&places[at]).0),
                    Cost::Refund(back) => {
                        verdicts[first + at] = self.refund(&places[at], back.get(), now);
                    }
                    Cost::Peek => {}
                }
            }
            return true;
        }
        // One was rejected: what was charged before it is not, and how they stand is said without
        // this call.
        for (charge, place) in charges.iter().zip(&places).take(charged) {
            self.take_back(place, charge.cost);
        }
        let without = charges.iter().zip(&places).enumerate();
        for (at, (charge, place)) in without {
            if at < charged {
                verdicts[first + at] = self.standing(place, charge.cost, now);
            } else if at > charged {
                let alone = self.judge_alone(place, charge.cost, now);
                let verdict = if alone.is_admitted() {
                    self.standing(place, charge.cost, now)
                } else {
                    alone
                };
                verdicts.push(verdict);
            }
        }
        true
    }

    /// How a limit stands that would have admitted. A refund is never rejected.
    fn standing(&self, place: &LimitClient, cost: Cost, now: TimestampUs) -> Verdict {
        let asked = match cost {
            Cost::Refund(_) => cost,
            Cost::Take(_) | Cost::Peek => Cost::Peek,
        };
        self.judge(place, asked, now)
    }

    /// `None` if the limit needs more than counters.
    fn place(&mut self, charge: &SharedAcquire<'_>, now: TimestampUs) -> Option<LimitClient> {
        let counters = charge.policy.counters()?;
        let indexes: Vec<CounterIndex> = counters.to_read(AddThenRead::at_once(now)).collect();
        let width = counters.width();
        let own = names::client(charge.limit, width, charge.key);
        let mut place = LimitClient {
            counters,
            indexes,
            own,
            crowd: None,
            name: own,
        };
        let crowd = || names::crowd(charge.limit, width, charge.key);
        let (slot, until) = newest(&place);
        if !self.board.has_place_for(slot) {
            place.name = crowd();
            place.crowd = Some(place.name);
            self.board.note_crowd(until);
            self.event_counts.crowded += u64::from(matches!(charge.cost, Cost::Take(_)));
        } else if self.board.may_be_of_crowd(slot, now) {
            place.crowd = Some(crowd());
        }
        Some(place)
    }

    /// Refunds wait until all others are admitted, and so does telling.
    fn take(&mut self, place: &LimitClient, cost: Cost, now: TimestampUs) -> Verdict {
        let verdict = self.judge_alone(place, cost, now);
        if let Cost::Take(taken) = cost
            && verdict.is_admitted()
        {
            let (slot, until) = newest(place);
            self.board.take(slot, until, taken.get());
        }
        verdict
    }

    fn take_back(&mut self, place: &LimitClient, cost: Cost) {
        if let Cost::Take(taken) = cost {
            self.board.take_back(newest(place).0, taken.get());
        }
    }

    /// From the newest counters on, and from none more than it has.
    fn refund(&mut self, place: &LimitClient, back: u32, now: TimestampUs) -> Verdict {
        let mut left = back;
        let before = (place.name != place.own).then_some(place.own);
        for name in [Some(place.name), before].into_iter().flatten() {
            for index in &place.indexes {
                let slot = place.slot(name, *index);
                let by = left.min(self.board.total(slot));
                if by > 0 {
                    self.board.give_back(slot, place.until(*index), by);
                    left -= by;
                }
            }
        }
        self.judge(place, Cost::refund(back), now)
    }

    /// What would become of a call that comes now.
    fn judge_alone(&self, place: &LimitClient, cost: Cost, now: TimestampUs) -> Verdict {
        let mut counts = self.counts(place);
        if let (Cost::Take(taken), Some(newest)) = (cost, counts.first_mut()) {
            *newest = newest.saturating_add(taken.get());
        }
        place.counters.judge_now(now, cost, &counts)
    }

    fn judge(&self, place: &LimitClient, cost: Cost, now: TimestampUs) -> Verdict {
        let counts = self.counts(place);
        place.counters.judge_now(now, cost, &counts)
    }

    fn counts(&self, place: &LimitClient) -> Vec<u32> {
        let names = || [Some(place.own), place.crowd].into_iter().flatten();
        let count = |index: &CounterIndex| {
            let totals = names().map(|name| self.board.total(place.slot(name, *index)));
            totals.fold(0, u32::saturating_add)
        };
        place.indexes.iter().map(count).collect()
    }
}

/// Where calls are added that come now.
fn newest(place: &LimitClient) -> (SlotId, TimestampUs) {
    // There is always one that counts now.
    let index = place.indexes.first().copied().unwrap_or(CounterIndex(0));
    (place.slot(place.name, index), place.until(index))
}
