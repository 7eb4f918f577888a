//! Calls as events, as the article has it: a node writes each call to one topic, somebody counts
//! them one after the other, and all nodes read the counts from another topic. Nobody counts its
//! own calls; the store `kafka` does.
//!
//! Whoever counts is as fast as the plan says. Each event yields new counts at once, which is the
//! kindest case: a real aggregation hands them out now and then.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::desk::{Arrival, Desk, Store};
use crate::lab::run::Plan;

/// What each node has read of each client, and until when there is work for whoever counts.
pub(crate) struct Events {
    policy: Policy,
    raised: Policy,
    nodes: u32,
    each_takes: DurationUs,
    busy_until: TimestampUs,
    read: BTreeMap<(u32, u32), State>,
}

/// A call, and whether it was let through.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    client: u32,
    at: TimestampUs,
    is_admitted: bool,
}

/// What is on its way.
pub(crate) enum Message {
    /// To whoever counts.
    Happened(Event),
    /// It is counted now.
    Counted(Event),
    /// To a node.
    Total(u32, Event),
}

impl Events {
    /// `raised` is the same algorithm with a limit that nobody reaches.
    pub(crate) fn new(plan: &Plan, raised: Policy) -> Self {
        Self {
            policy: plan.policy,
            raised,
            nodes: plan.nodes,
            each_takes: DurationUs(1_000_000 / u64::from(plan.events_per_second.max(1))),
            busy_until: TimestampUs(0),
            read: BTreeMap::new(),
        }
    }
}

impl Store for Events {
    type Message = Message;

    /// A call is decided by what was read, and its own node reads of it like all others.
    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Message>) {
        let at = desk.now();
        let state = self.read.entry((call.node, call.client)).or_default();
        let verdict = self.policy.step(state, at, Cost::Peek);
        desk.tell(call.client, &verdict);
        desk.send(Message::Happened(Event {
            client: call.client,
            at,
            is_admitted: verdict.is_admitted(),
        }));
    }

    fn handle_message(&mut self, message: Message, desk: &mut Desk<Message>) {
        match message {
            Message::Happened(event) => {
                self.busy_until = self.busy_until.max(desk.now()) + self.each_takes;
                desk.wake(self.busy_until, Message::Counted(event));
            }
            Message::Counted(event) if event.is_admitted => {
                for node in 0..self.nodes {
                    desk.send(Message::Total(node, event));
                }
            }
            Message::Counted(_) => {}
            Message::Total(node, event) => {
                desk.hear(event.at);
                let state = self.read.entry((node, event.client)).or_default();
                self.raised.step(state, event.at, Cost::ONE);
            }
        }
    }
}
