//! Chatty servers: nodes tell all others what they let through, and each decides by what it
//! admitted and has heard.
//!
//! They do so in rounds, as the store `gossip` does, or with an interval of zero at once, as the
//! article has it. A message has all that a node has to tell another; a datagram of the store has
//! 34 counters, and goes out three times, as some are lost. None is lost here.

use std::rc::Rc;

use anteroom_limit::counters::Counters;

use super::desk::{Arrival, Desk, Store};
use super::known::Known;
use super::news::{Due, News, Round};
use crate::lab::run::Plan;

/// What each node knows of each client, and what it has to tell.
pub(crate) struct Gossip {
    nodes: u32,
    known: Known,
    rounds: Vec<Round>,
}

/// What is on its way, or due.
pub(crate) enum Message {
    /// A node's round.
    Round(u32),
    /// To a node.
    Told(u32, Rc<[News]>),
}

impl Gossip {
    pub(crate) fn new(plan: &Plan, counters: Counters) -> Self {
        Self {
            nodes: plan.nodes,
            known: Known::new(counters),
            rounds: Round::of(plan, plan.nodes),
        }
    }

    fn tell_others(&mut self, node: u32, desk: &mut Desk<Message>) {
        let news: Rc<[News]> = self.rounds[node as usize].take().into();
        for to in (0..self.nodes).filter(|to| *to != node) {
            desk.send(Message::Told(to, Rc::clone(&news)));
        }
    }
}

impl Store for Gossip {
    type Message = Message;

    fn handle_call(&mut self, call: Arrival, desk: &mut Desk<Message>) {
        let now = desk.now();
        let (verdict, news) = self.known.charge(call.node, call.client, now);
        desk.tell(call.client, &verdict);
        let Some(news) = news else {
            return;
        };
        match self.rounds[call.node as usize].gather(news, now) {
            Due::Now => self.tell_others(call.node, desk),
            Due::At(at) => desk.wake(at, Message::Round(call.node)),
            Due::Known => {}
        }
    }

    fn handle_message(&mut self, message: Message, desk: &mut Desk<Message>) {
        match message {
            Message::Round(node) => self.tell_others(node, desk),
            Message::Told(to, told) => {
                for news in told.iter() {
                    desk.hear(news.since);
                    self.known.hear(to, news);
                }
            }
        }
    }
}
