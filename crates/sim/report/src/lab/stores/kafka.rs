//! Store `kafka`: nodes report to one topic at intervals what they allowed. An aggregator sums that
//! up and publishes totals to another topic, which all nodes read. Each node decides by its own
//! requests and the totals.
//!
//! The plan sets the speed of the aggregator. The article's queue of events, where nodes only read,
//! is [`super::Events`].

use std::rc::Rc;

use anteroom_limit::counters::Counters;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::node_counts::NodeCounts;
use super::outbox::{Due, Increment, Outbox};
use super::scheduler::{Arrival, Scheduler, Store};
use crate::lab::run::Plan;

/// Counts of each node, pending reports, and the time until which the aggregator is busy.
pub(crate) struct Kafka {
    nodes: u32,
    node_counts: NodeCounts,
    outboxes: Vec<Outbox>,
    totals: Outbox,
    each_takes: DurationUs,
    busy_until: TimestampUs,
}

/// Message on its way, or planned report.
pub(crate) enum Message {
    /// A node's report is due.
    ReportDue(u32),
    /// Message to the aggregator.
    Report(Increment),
    /// Summed up by the aggregator now.
    Counted(Increment),
    /// The aggregator's report is due.
    Publish,
    /// Message to a node.
    Totals(u32, Rc<[Increment]>),
}

impl Kafka {
    pub(crate) fn new(plan: &Plan, counters: Counters) -> Self {
        let mut outboxes = Outbox::of(plan, plan.nodes + 1);
        let totals = outboxes.remove(0);
        Self {
            nodes: plan.nodes,
            node_counts: NodeCounts::new(counters),
            outboxes,
            totals,
            each_takes: DurationUs(1_000_000 / u64::from(plan.events_per_second.max(1))),
            busy_until: TimestampUs(0),
        }
    }

    fn send_reports(&mut self, node: u32, scheduler: &mut Scheduler<Message>) {
        for increment in self.outboxes[node as usize].take() {
            scheduler.send(Message::Report(increment));
        }
    }

    /// Publishes the totals: one message for each client and node; those of one report come
    /// together.
    fn publish(&mut self, scheduler: &mut Scheduler<Message>) {
        let totals: Rc<[Increment]> = self.totals.take().into();
        let clients = totals
            .chunk_by(|one, next| one.client == next.client)
            .count();
        for to in 0..self.nodes {
            scheduler.send(Message::Totals(to, Rc::clone(&totals)));
            scheduler.costs.messages += (clients as u64).saturating_sub(1);
        }
    }
}

impl Store for Kafka {
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
            Message::Report(increment) => {
                self.busy_until = self.busy_until.max(scheduler.now()) + self.each_takes;
                scheduler.wake(self.busy_until, Message::Counted(increment));
            }
            Message::Counted(increment) => match self.totals.gather(increment, scheduler.now()) {
                Due::Now => self.publish(scheduler),
                Due::At(at) => scheduler.wake(at, Message::Publish),
                Due::Planned => {}
            },
            Message::Publish => self.publish(scheduler),
            Message::Totals(to, totals) => {
                // A node has counted its own requests at once.
                for increment in totals.iter().filter(|increment| increment.writer != to) {
                    scheduler.note_lag(increment.since);
                    self.node_counts.add(to, increment);
                }
            }
        }
    }
}
