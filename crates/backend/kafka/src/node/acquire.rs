//! Acquires from several limits by the counts known here.
//!
//! All of it happens under one lock, so each request of a node sees all earlier ones: alone, a node
//! admits exactly what the algorithm does.

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::shared::SharedAcquire;

use super::Node;
use crate::names;
use crate::stats::{Name, SlotId};

/// One limit, and the names under which its client is counted.
struct LimitClient {
    counters: Counters,
    /// Sub-windows that count, newest first.
    indexes: Vec<CounterIndex>,
    own: Name,
    /// Overflow entry that counts as well, if the client has no slot or had none a while ago.
    overflow: Option<Name>,
    /// Name under which it is counted from now on.
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
    /// Acquires from several limits, or from none of them, and appends a verdict for each. Returns
    /// `false` and does nothing if one of them cannot be counted in windows.
    pub(crate) fn acquire(
        &mut self,
        acquires: &[SharedAcquire<'_>],
        now: TimestampUs,
        verdicts: &mut Vec<Verdict>,
    ) -> bool {
        let clients = acquires.iter().map(|acquire| self.client(acquire, now));
        let Some(clients) = clients.collect::<Option<Vec<LimitClient>>>() else {
            return false;
        };
        let first = verdicts.len();
        let mut acquired = 0;
        for (acquire, client) in acquires.iter().zip(&clients) {
            let verdict = self.take(client, acquire.cost, now);
            verdicts.push(verdict);
            if !verdict.is_allowed() {
                break;
            }
            acquired += 1;
        }
        if acquired == acquires.len() {
            for (at, acquire) in acquires.iter().enumerate() {
                match acquire.cost {
                    Cost::Take(_) => self.board.queue_report(newest(&clients[at]).0),
                    Cost::Refund(refunded) => {
                        verdicts[first + at] = self.refund(&clients[at], refunded.get(), now);
                    }
                    Cost::Peek => {}
                }
            }
            return true;
        }
        // One limit rejected: undo the acquires before it, and report the others without this
        // request.
        for (acquire, client) in acquires.iter().zip(&clients).take(acquired) {
            self.undo_take(client, acquire.cost);
        }
        let without = acquires.iter().zip(&clients).enumerate();
        for (at, (acquire, client)) in without {
            if at < acquired {
                verdicts[first + at] = self.state_without(client, acquire.cost, now);
            } else if at > acquired {
                let alone = self.decide(client, acquire.cost, now);
                let verdict = if alone.is_allowed() {
                    self.state_without(client, acquire.cost, now)
                } else {
                    alone
                };
                verdicts.push(verdict);
            }
        }
        true
    }

    /// Returns the state of a limit that would have admitted. A refund is never rejected.
    fn state_without(&self, client: &LimitClient, cost: Cost, now: TimestampUs) -> Verdict {
        let cost = match cost {
            Cost::Refund(_) => cost,
            Cost::Take(_) | Cost::Peek => Cost::Peek,
        };
        self.state(client, cost, now)
    }

    /// Returns the client of a limit; `None` if the limit needs more than counters.
    fn client(&mut self, acquire: &SharedAcquire<'_>, now: TimestampUs) -> Option<LimitClient> {
        let counters = acquire.policy.counters()?;
        let indexes: Vec<CounterIndex> = counters.to_read(AddThenRead::at_once(now)).collect();
        let width = counters.width();
        let own = names::client(acquire.limit, width, acquire.key);
        let mut client = LimitClient {
            counters,
            indexes,
            own,
            overflow: None,
            name: own,
        };
        let overflow = || names::overflow(acquire.limit, width, acquire.key);
        let (slot, until) = newest(&client);
        if !self.board.has_room_for(slot) {
            client.name = overflow();
            client.overflow = Some(client.name);
            self.board.note_overflow(until);
            self.event_counts.overflow += u64::from(matches!(acquire.cost, Cost::Take(_)));
        } else if self.board.may_be_in_overflow(slot, now) {
            client.overflow = Some(overflow());
        }
        Some(client)
    }

    /// Acquires from one limit. Refunds and reports wait until all others have admitted.
    fn take(&mut self, client: &LimitClient, cost: Cost, now: TimestampUs) -> Verdict {
        let verdict = self.decide(client, cost, now);
        if let Cost::Take(taken) = cost
            && verdict.is_allowed()
        {
            let (slot, until) = newest(client);
            self.board.take(slot, until, taken.get());
        }
        verdict
    }

    fn undo_take(&mut self, client: &LimitClient, cost: Cost) {
        if let Cost::Take(taken) = cost {
            self.board.undo_take(newest(client).0, taken.get());
        }
    }

    /// Refunds from the newest counters on, from none more than it has.
    fn refund(&mut self, client: &LimitClient, refunded: u32, now: TimestampUs) -> Verdict {
        let mut left = refunded;
        let before = (client.name != client.own).then_some(client.own);
        for name in [Some(client.name), before].into_iter().flatten() {
            for index in &client.indexes {
                let slot = client.slot(name, *index);
                let by = left.min(self.board.total(slot));
                if by > 0 {
                    self.board.refund(slot, client.until(*index), by);
                    left -= by;
                }
            }
        }
        self.state(client, Cost::refund(refunded), now)
    }

    /// Returns the verdict of a request at this time.
    fn decide(&self, client: &LimitClient, cost: Cost, now: TimestampUs) -> Verdict {
        let mut counts = self.counts(client);
        if let (Cost::Take(taken), Some(newest)) = (cost, counts.first_mut()) {
            *newest = newest.saturating_add(taken.get());
        }
        client.counters.decide_now(now, cost, &counts)
    }

    fn state(&self, client: &LimitClient, cost: Cost, now: TimestampUs) -> Verdict {
        let counts = self.counts(client);
        client.counters.decide_now(now, cost, &counts)
    }

    fn counts(&self, client: &LimitClient) -> Vec<u32> {
        let names = || [Some(client.own), client.overflow].into_iter().flatten();
        let count = |index: &CounterIndex| {
            let totals = names().map(|name| self.board.total(client.slot(name, *index)));
            totals.fold(0, u32::saturating_add)
        };
        client.indexes.iter().map(count).collect()
    }
}

/// Returns the slot to which a request is added now, and its end.
fn newest(client: &LimitClient) -> (SlotId, TimestampUs) {
    // There is always a current sub-window.
    let index = client.indexes.first().copied().unwrap_or(CounterIndex(0));
    (client.slot(client.name, index), client.until(index))
}
