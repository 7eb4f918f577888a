//! Requests as events, as in the article. A node writes each request to one topic, a job counts
//! them one after the other, and all nodes read the counts from another topic. No node counts its
//! own requests; the store `kafka` does.
//!
//! The plan sets the speed of the job. Each event yields new counts at once, which is the best
//! case: a real job publishes them now and then.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::scheduler::{Arrival, Scheduler, Store};
use crate::lab::run::Plan;

/// Counts that each node has read of each client, and the time until which the job is busy.
pub(crate) struct Events {
    policy: Policy,
    raised: Policy,
    nodes: u32,
    each_takes: DurationUs,
    busy_until: TimestampUs,
    read: BTreeMap<(u32, u32), State>,
}

/// Request, and whether it was allowed.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    client: u32,
    at: TimestampUs,
    is_admitted: bool,
}

/// Message on its way.
pub(crate) enum Message {
    /// Message to the job.
    Happened(Event),
    /// Counted by the job now.
    Counted(Event),
    /// Message to a node.
    Total(u32, Event),
}

impl Events {
    /// Creates the store; `raised` is the algorithm with a limit that is never reached.
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

    /// Decides a request by the counts that its node has read. Its own node reads it from the topic
    /// like all others.
    fn handle_request(&mut self, request: Arrival, scheduler: &mut Scheduler<Message>) {
        let at = scheduler.now();
        let state = self.read.entry((request.node, request.client)).or_default();
        let verdict = self.policy.step(state, at, Cost::Peek);
        scheduler.record(request.client, &verdict);
        scheduler.send(Message::Happened(Event {
            client: request.client,
            at,
            is_admitted: verdict.is_allowed(),
        }));
    }

    fn handle_message(&mut self, message: Message, scheduler: &mut Scheduler<Message>) {
        match message {
            Message::Happened(event) => {
                self.busy_until = self.busy_until.max(scheduler.now()) + self.each_takes;
                scheduler.wake(self.busy_until, Message::Counted(event));
            }
            Message::Counted(event) if event.is_admitted => {
                for node in 0..self.nodes {
                    scheduler.send(Message::Total(node, event));
                }
            }
            Message::Counted(_) => {}
            Message::Total(node, event) => {
                scheduler.note_lag(event.at);
                let state = self.read.entry((node, event.client)).or_default();
                self.raised.step(state, event.at, Cost::ONE);
            }
        }
    }
}
