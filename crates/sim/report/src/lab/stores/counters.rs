//! A store that can add: a call is added to its counter, the counters are read, and a call that
//! does not fit is taken back.

use std::collections::BTreeMap;

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::TimestampUs;

use crate::lab::outcome::Fate;

use super::desk::{Arrival, Desk, Store};

/// A counter for each client and stretch of time.
pub(crate) struct MemcachedCounters {
    counters: Counters,
    kept: BTreeMap<(u32, CounterIndex), u32>,
}

/// What is on its way to the store.
pub(crate) enum Message {
    /// Add a call that came then to its counter, and read.
    Add { client: u32, added_at: TimestampUs },
    /// To the node: it did not fit.
    Refused { client: u32, index: CounterIndex },
    /// To the store: so it does not count.
    TakeBack { client: u32, index: CounterIndex },
}

impl MemcachedCounters {
    pub(crate) fn new(counters: Counters) -> Self {
        Self {
            counters,
            kept: BTreeMap::new(),
        }
    }

    fn add(&mut self, client: u32, added_at: TimestampUs, desk: &mut Desk<Message>) {
        let index = self.counters.index_at(added_at);
        *self.kept.entry((client, index)).or_default() += 1;
        let call = AddThenRead {
            added_at,
            read_at: desk.now(),
        };
        let read = |index| self.kept.get(&(client, index)).copied().unwrap_or(0);
        let counts: Vec<u32> = self.counters.to_read(call).map(read).collect();
        let verdict = self.counters.judge(call, Cost::ONE, &counts);
        desk.costs.writes += 1;
        let fate = if verdict.is_admitted() {
            Fate::Admitted
        } else {
            Fate::Refused
        };
        // The counter was chosen by the moment at which the call came, so that is when it counts.
        desk.decide(client, added_at, fate);
        if fate == Fate::Refused {
            desk.send(Message::Refused { client, index });
        } else {
            // The way back changes nothing any more.
            desk.costs.messages += 1;
        }
    }
}

impl Store for MemcachedCounters {
    type Message = Message;

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Message>) {
        desk.send(Message::Add {
            client: call.client,
            added_at: desk.now(),
        });
    }

    fn handle_message(&mut self, message: Message, desk: &mut Desk<Message>) {
        match message {
            Message::Add { client, added_at } => self.add(client, added_at, desk),
            Message::Refused { client, index } => desk.send(Message::TakeBack { client, index }),
            Message::TakeBack { client, index } => {
                let counter = self.kept.entry((client, index)).or_default();
                *counter = counter.saturating_sub(1);
            }
        }
    }
}
