//! The store `kafka`: nodes tell one topic in rounds what they admitted, somebody sums that up, and
//! publishes totals in rounds to another topic, which all nodes read. Each decides by what it
//! admitted and has read.
//!
//! Whoever sums up is as fast as the plan says. The article's queue of events, where nodes only
//! read, is [`super::Events`].

use std::rc::Rc;

use anteroom_limit::counters::Counters;
use anteroom_limit::time::{DurationUs, TimestampUs};

use super::desk::{Arrival, Desk, Store};
use super::known::Known;
use super::news::{Due, News, Round};
use crate::lab::run::Plan;

/// What each node knows, what it has to tell, and until when there is work for whoever sums up.
pub(crate) struct Kafka {
    nodes: u32,
    known: Known,
    rounds: Vec<Round>,
    totals: Round,
    each_takes: DurationUs,
    busy_until: TimestampUs,
}

/// What is on its way, or due.
pub(crate) enum Message {
    /// A node's round.
    Round(u32),
    /// To whoever sums up.
    Told(News),
    /// It is summed up now.
    Counted(News),
    /// The round of whoever sums up.
    Publish,
    /// To a node.
    Totals(u32, Rc<[News]>),
}

impl Kafka {
    pub(crate) fn new(plan: &Plan, counters: Counters) -> Self {
        let mut rounds = Round::of(plan, plan.nodes + 1);
        let totals = rounds.remove(0);
        Self {
            nodes: plan.nodes,
            known: Known::new(counters),
            rounds,
            totals,
            each_takes: DurationUs(1_000_000 / u64::from(plan.events_per_second.max(1))),
            busy_until: TimestampUs(0),
        }
    }

    fn tell(&mut self, node: u32, desk: &mut Desk<Message>) {
        for news in self.rounds[node as usize].take() {
            desk.send(Message::Told(news));
        }
    }

    /// A message for each client and node; those of a round come together.
    fn publish(&mut self, desk: &mut Desk<Message>) {
        let totals: Rc<[News]> = self.totals.take().into();
        let clients = totals
            .chunk_by(|one, next| one.client == next.client)
            .count();
        for to in 0..self.nodes {
            desk.send(Message::Totals(to, Rc::clone(&totals)));
            desk.costs.messages += (clients as u64).saturating_sub(1);
        }
    }
}

impl Store for Kafka {
    type Message = Message;

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Message>) {
        let now = desk.now();
        let (verdict, news) = self.known.charge(call.node, call.client, now);
        desk.tell(call.client, &verdict);
        let Some(news) = news else {
            return;
        };
        match self.rounds[call.node as usize].gather(news, now) {
            Due::Now => self.tell(call.node, desk),
            Due::At(at) => desk.wake(at, Message::Round(call.node)),
            Due::Known => {}
        }
    }

    fn handle_message(&mut self, message: Message, desk: &mut Desk<Message>) {
        match message {
            Message::Round(node) => self.tell(node, desk),
            Message::Told(news) => {
                self.busy_until = self.busy_until.max(desk.now()) + self.each_takes;
                desk.wake(self.busy_until, Message::Counted(news));
            }
            Message::Counted(news) => match self.totals.gather(news, desk.now()) {
                Due::Now => self.publish(desk),
                Due::At(at) => desk.wake(at, Message::Publish),
                Due::Known => {}
            },
            Message::Publish => self.publish(desk),
            Message::Totals(to, totals) => {
                // What a node admitted itself it has counted at once.
                for news in totals.iter().filter(|news| news.writer != to) {
                    desk.hear(news.since);
                    self.known.hear(to, news);
                }
            }
        }
    }
}
