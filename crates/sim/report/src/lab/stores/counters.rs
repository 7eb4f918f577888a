//! Store that adds to counters: it adds a request to its counter and reads the counters, and the
//! node takes a request back that does not fit.

use std::collections::BTreeMap;

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::TimestampUs;

use crate::lab::outcome::Fate;

use super::scheduler::{Arrival, Scheduler, Store};

/// Counters by client and part of the window.
pub(crate) struct MemcachedCounters {
    counters: Counters,
    stored: BTreeMap<(u32, CounterIndex), u32>,
}

/// Message between a node and the store.
pub(crate) enum Message {
    /// Message to the store: adds a request of that time to its counter, and reads.
    Add { client: u32, added_at: TimestampUs },
    /// Message to the node: the request did not fit.
    Rejected { client: u32, index: CounterIndex },
    /// Message to the store: takes the request back.
    TakeBack { client: u32, index: CounterIndex },
}

impl MemcachedCounters {
    pub(crate) fn new(counters: Counters) -> Self {
        Self {
            counters,
            stored: BTreeMap::new(),
        }
    }

    fn add(&mut self, client: u32, added_at: TimestampUs, scheduler: &mut Scheduler<Message>) {
        let index = self.counters.index_at(added_at);
        *self.stored.entry((client, index)).or_default() += 1;
        let request = AddThenRead {
            added_at,
            read_at: scheduler.now(),
        };
        let read = |index| self.stored.get(&(client, index)).copied().unwrap_or(0);
        let counts: Vec<u32> = self.counters.to_read(request).map(read).collect();
        let verdict = self.counters.decide(request, Cost::ONE, &counts);
        scheduler.costs.writes += 1;
        let fate = if verdict.is_allowed() {
            Fate::Admitted
        } else {
            Fate::Rejected
        };
        // The arrival time of the request chose the counter, so that time counts.
        scheduler.decide(client, added_at, fate);
        if fate == Fate::Rejected {
            scheduler.send(Message::Rejected { client, index });
        } else {
            // The reply to the node changes nothing more.
            scheduler.costs.messages += 1;
        }
    }
}

impl Store for MemcachedCounters {
    type Message = Message;

    fn handle_request(&mut self, request: Arrival, scheduler: &mut Scheduler<Message>) {
        scheduler.send(Message::Add {
            client: request.client,
            added_at: scheduler.now(),
        });
    }

    fn handle_message(&mut self, message: Message, scheduler: &mut Scheduler<Message>) {
        match message {
            Message::Add { client, added_at } => self.add(client, added_at, scheduler),
            Message::Rejected { client, index } => {
                scheduler.send(Message::TakeBack { client, index });
            }
            Message::TakeBack { client, index } => {
                let counter = self.stored.entry((client, index)).or_default();
                *counter = counter.saturating_sub(1);
            }
        }
    }
}
