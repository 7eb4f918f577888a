//! Chatty servers: nodes report their allowed requests to all others, and each decides by its own
//! and the reported ones.
//!
//! They report at intervals, as the store `gossip` does, or at once with an interval of zero, as in
//! the article. A message has all that a node reports to another. A datagram of the store has 34
//! counters, and is sent three times, because some are lost. The model loses none.

use std::rc::Rc;

use anteroom_limit::counters::Counters;

use super::node_counts::NodeCounts;
use super::outbox::{Due, Increment, Outbox};
use super::scheduler::{Arrival, Scheduler, Store};
use crate::lab::run::Plan;

/// Counts of each node by client, and the pending reports.
pub(crate) struct Gossip {
    nodes: u32,
    node_counts: NodeCounts,
    outboxes: Vec<Outbox>,
}

/// Message on its way, or planned report.
pub(crate) enum Message {
    /// A node's report is due.
    ReportDue(u32),
    /// Message to a node.
    Report(u32, Rc<[Increment]>),
}

impl Gossip {
    pub(crate) fn new(plan: &Plan, counters: Counters) -> Self {
        Self {
            nodes: plan.nodes,
            node_counts: NodeCounts::new(counters),
            outboxes: Outbox::of(plan, plan.nodes),
        }
    }

    fn send_reports(&mut self, node: u32, scheduler: &mut Scheduler<Message>) {
        let increments: Rc<[Increment]> = self.outboxes[node as usize].take().into();
        for to in (0..self.nodes).filter(|to| *to != node) {
            scheduler.send(Message::Report(to, Rc::clone(&increments)));
        }
    }
}

impl Store for Gossip {
    type Message = Message;

    fn handle_request(&mut self, request: Arrival, scheduler: &mut Scheduler<Message>) {
        let now = scheduler.now();
        let (verdict, increment) = self.node_counts.acquire(request.node, request.client, now);
        scheduler.record(request.client, &verdict);
        let Some(increment) = increment else {
            return;
        };
        match self.outboxes[request.node as usize].gather(increment, now) {
            Due::Now => self.send_reports(request.node, scheduler),
            Due::At(at) => scheduler.wake(at, Message::ReportDue(request.node)),
            Due::Planned => {}
        }
    }

    fn handle_message(&mut self, message: Message, scheduler: &mut Scheduler<Message>) {
        match message {
            Message::ReportDue(node) => self.send_reports(node, scheduler),
            Message::Report(to, report) => {
                for increment in report.iter() {
                    scheduler.note_lag(increment.since);
                    self.node_counts.add(to, increment);
                }
            }
        }
    }
}
