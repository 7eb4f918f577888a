//! Real time, and what happens in it: messages that are late, lost, doubled and out of order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anteroom_limit::lending::epoch::Epoch;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::time::TimestampUs;

use crate::lending::draw::Draw;
use crate::lending::judge::Judge;
use crate::lending::node::{Node, Purpose, Told, spoil};
use crate::lending::plan::{Crowd, Network};
use crate::lending::planted::Bug;
use crate::lending::store::{Message, Reply, Store};

/// When every run begins.
pub(crate) const BEGIN: u64 = 1_700_000_000_000_000;
/// How long a node waits for answers to one request.
const TIMEOUT: u64 = 900_000;
/// How often a node looks which epoch it is.
const LOOK: u64 = 500_000;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Crash(usize),
    Cut(usize, u64),
    Wipe,
    RollBack(u64),
    StepBack(u64),
    StepForward(u64),
    Change(usize, LeasedLimit),
}

/// A call that turns out not to count.
#[derive(Clone, Copy)]
struct Spent {
    real: u64,
    /// By the node's clock.
    at: TimestampUs,
    calls: u32,
}

enum Event {
    Call(usize),
    Look(usize),
    ToStore(usize, Message, Purpose),
    ToNode(usize, Reply, Purpose),
    TimeOut(usize, Purpose),
    Undo(usize, Spent),
    Fault(Fault),
}

pub(crate) struct World {
    pub(crate) real: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: std::collections::HashMap<u64, Event>,
    count: u64,
    draw: Draw,
    pub(crate) store: Store,
    nodes: Vec<Node>,
    crowds: Vec<Crowd>,
    cost_max: u64,
    pub(crate) network: Network,
    pub(crate) judge: Judge,
    pub(crate) told: Told,
    pub(crate) rounds: u64,
    bug: Option<Bug>,
}

impl World {
    pub(crate) fn new(
        draw: Draw,
        epoch: Option<Epoch>,
        network: Network,
        bug: Option<Bug>,
    ) -> Self {
        Self {
            real: BEGIN,
            queue: BinaryHeap::new(),
            events: std::collections::HashMap::new(),
            count: 0,
            draw,
            store: Store::new(epoch, bug),
            nodes: Vec::new(),
            crowds: Vec::new(),
            cost_max: 1,
            network,
            judge: Judge::default(),
            told: Told::default(),
            rounds: 0,
            bug,
        }
    }

    pub(crate) fn set_costs(&mut self, cost_max: u64) {
        self.cost_max = cost_max;
    }

    pub(crate) fn add_node(&mut self, promised: LeasedLimit, lending: LeasedLimit, crowd: Crowd) {
        let offset = self.draw.below(1_000_000_000_000);
        let drift = i64::try_from(self.draw.below(401)).expect("it is small") - 200;
        let node = self.nodes.len();
        self.nodes.push(Node::new(lending, offset, drift, self.bug));
        self.crowds.push(crowd);
        self.judge.begin(*promised.promised());
        self.after(0, Event::Call(node));
        let first = self.draw.below(LOOK);
        self.after(first, Event::Look(node));
    }

    pub(crate) fn plan(&mut self, after: u64, fault: Fault) {
        self.after(after, Event::Fault(fault));
    }

    fn after(&mut self, span: u64, event: Event) {
        self.count += 1;
        self.queue.push(Reverse((self.real + span, self.count)));
        self.events.insert(self.count, event);
    }

    /// Lets so much time pass.
    pub(crate) fn run(&mut self, span: u64) -> Result<(), String> {
        let end = self.real + span;
        while let Some(Reverse((at, count))) = self.queue.peek().copied()
            && at < end
        {
            self.queue.pop();
            self.real = at;
            let event = self.events.remove(&count).expect("each happens once");
            self.handle(event)?;
        }
        self.real = end;
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Call(node) => self.calls(node),
            Event::Look(node) => {
                let (message, purpose) = self.nodes[node].look(self.real);
                self.send(node, message, purpose);
                self.after(LOOK, Event::Look(node));
                Ok(())
            }
            Event::ToStore(node, message, purpose) => {
                let reply = self.store.handle(self.real, message);
                self.travel(node, |world, span| {
                    let reply = reply.clone();
                    world.after(span, Event::ToNode(node, reply, purpose));
                });
                Ok(())
            }
            Event::ToNode(node, reply, purpose) => {
                let random = self.draw.number();
                let next = self.nodes[node].handle(self.real, reply, purpose, random);
                if let Some((message, purpose)) = next {
                    self.send(node, message, purpose);
                }
                self.settle(node)
            }
            Event::TimeOut(node, purpose) => {
                self.nodes[node].timeout(self.real, purpose);
                self.settle(node)
            }
            Event::Undo(node, Spent { real, at, calls }) => {
                let node = &mut self.nodes[node];
                node.holding.undo(node.now(self.real), at, calls);
                self.judge.undo(real, calls);
                Ok(())
            }
            Event::Fault(fault) => {
                self.break_something(fault);
                Ok(())
            }
        }
    }

    fn calls(&mut self, node: usize) -> Result<(), String> {
        let (calls, apart) = match self.crowds[node] {
            Crowd::Steady(apart) => (1, apart),
            Crowd::Bursts(calls, apart) => (self.draw.within(1, calls), apart),
        };
        for _ in 0..calls {
            let cost = match self.draw.one_in(4) {
                true => self.draw.within(1, self.cost_max),
                false => 1,
            };
            let cost = u32::try_from(cost).expect("it is small");
            let told = self.nodes[node].call(self.real, cost);
            self.count_in(told)?;
            if told.admitted > 0 && self.cost_max > 1 && self.draw.one_in(8) {
                let (real, at) = (self.real, self.nodes[node].now(self.real));
                let calls = told.admitted;
                let later = self.draw.below(2_000_000);
                self.after(later, Event::Undo(node, Spent { real, at, calls }));
            }
        }
        self.poll(node);
        let next = self.draw.within(apart / 2, apart * 3 / 2);
        self.after(next, Event::Call(node));
        Ok(())
    }

    fn settle(&mut self, node: usize) -> Result<(), String> {
        let told = self.nodes[node].settle(self.real);
        self.count_in(told)?;
        self.poll(node);
        Ok(())
    }

    fn count_in(&mut self, told: Told) -> Result<(), String> {
        self.told.admitted += told.admitted;
        self.told.rejected += told.rejected;
        self.told.away += told.away;
        if told.admitted > 0 {
            self.judge.spend(self.real, told.admitted)?;
        }
        Ok(())
    }

    fn poll(&mut self, node: usize) {
        if let Some((message, purpose)) = self.nodes[node].poll(self.real) {
            self.rounds += 1;
            self.send(node, message, purpose);
            self.after(TIMEOUT, Event::TimeOut(node, purpose));
        }
    }

    fn send(&mut self, node: usize, mut message: Message, purpose: Purpose) {
        spoil(&mut message, self.bug);
        self.travel(node, |world, span| {
            world.after(span, Event::ToStore(node, message.clone(), purpose));
        });
    }

    /// Delivers a message never, once or twice.
    fn travel(&mut self, node: usize, mut deliver: impl FnMut(&mut Self, u64)) {
        let Network {
            delay_max,
            lost,
            doubled,
        } = self.network;
        let is_lost = self.draw.below(1_000) < lost || self.nodes[node].cut_until > self.real;
        let copies = 1 + u64::from(self.draw.below(1_000) < doubled);
        for _ in 0..copies {
            let mut span = self.draw.below(delay_max + 1);
            if doubled > 0 && self.draw.below(3_000) < doubled {
                span += self.draw.below(1_500_000);
            }
            if !is_lost {
                deliver(self, span);
            }
        }
    }

    fn break_something(&mut self, fault: Fault) {
        match fault {
            Fault::Crash(node) => {
                let incarnation = self.draw.number();
                self.nodes[node].crash(incarnation);
            }
            Fault::Cut(node, span) => self.nodes[node].cut_until = self.real + span,
            Fault::Wipe => self.store.wipe(),
            Fault::RollBack(span) => self.store.roll_back(self.real - span),
            Fault::StepBack(span) => self
                .store
                .step_clock(-i64::try_from(span).expect("it is small")),
            Fault::StepForward(span) => {
                self.judge.step_forward(self.real);
                self.store
                    .step_clock(i64::try_from(span).expect("it is small"));
            }
            Fault::Change(node, lending) => {
                let node = &mut self.nodes[node];
                self.judge.end(self.real, *node.lending.promised());
                self.judge.begin(*lending.promised());
                node.lending = lending;
                node.holding.handle_new_limit();
            }
        }
    }
}
