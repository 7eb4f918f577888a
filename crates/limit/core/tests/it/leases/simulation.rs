//! Real time and its events: messages that are late, lost, doubled and out of order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anteroom_limit::leases::epoch::Epoch;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::time::TimestampUs;

use crate::leases::checker::Checker;
use crate::leases::draw::Draw;
use crate::leases::mutations::Mutation;
use crate::leases::node::{Node, Outcomes, Purpose, mutate};
use crate::leases::plan::{Network, Traffic};
use crate::leases::store::{Message, Reply, Store};

/// Start of every run.
pub(crate) const BEGIN: u64 = 1_700_000_000_000_000;
/// Time that a node waits for the reply to one request.
const TIMEOUT: u64 = 900_000;
/// Interval at which a node reads the epoch.
const READ_EPOCH_EVERY: u64 = 500_000;

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

/// Request that is undone later.
#[derive(Clone, Copy)]
struct Spent {
    real: u64,
    /// Time by the node's clock.
    at: TimestampUs,
    requests: u32,
}

enum Event {
    Requests(usize),
    ReadEpoch(usize),
    ToStore(usize, Message, Purpose),
    ToNode(usize, Reply, Purpose),
    TimeOut(usize, Purpose),
    Undo(usize, Spent),
    Fault(Fault),
}

pub(crate) struct Simulation {
    pub(crate) real: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: std::collections::HashMap<u64, Event>,
    count: u64,
    draw: Draw,
    pub(crate) store: Store,
    nodes: Vec<Node>,
    traffic: Vec<Traffic>,
    cost_max: u64,
    pub(crate) network: Network,
    pub(crate) checker: Checker,
    pub(crate) outcomes: Outcomes,
    pub(crate) rounds: u64,
    mutation: Option<Mutation>,
}

impl Simulation {
    pub(crate) fn new(
        draw: Draw,
        epoch: Option<Epoch>,
        network: Network,
        mutation: Option<Mutation>,
    ) -> Self {
        Self {
            real: BEGIN,
            queue: BinaryHeap::new(),
            events: std::collections::HashMap::new(),
            count: 0,
            draw,
            store: Store::new(epoch, mutation),
            nodes: Vec::new(),
            traffic: Vec::new(),
            cost_max: 1,
            network,
            checker: Checker::default(),
            outcomes: Outcomes::default(),
            rounds: 0,
            mutation,
        }
    }

    pub(crate) fn set_costs(&mut self, cost_max: u64) {
        self.cost_max = cost_max;
    }

    pub(crate) fn add_node(&mut self, promised: LeasedLimit, limit: LeasedLimit, traffic: Traffic) {
        let offset = self.draw.below(1_000_000_000_000);
        let drift = i64::try_from(self.draw.below(401)).expect("it is small") - 200;
        let node = self.nodes.len();
        self.nodes
            .push(Node::new(limit, offset, drift, self.mutation));
        self.traffic.push(traffic);
        self.checker.begin(*promised.promised());
        self.after(0, Event::Requests(node));
        let first = self.draw.below(READ_EPOCH_EVERY);
        self.after(first, Event::ReadEpoch(node));
    }

    pub(crate) fn plan(&mut self, after: u64, fault: Fault) {
        self.after(after, Event::Fault(fault));
    }

    fn after(&mut self, span: u64, event: Event) {
        self.count += 1;
        self.queue.push(Reverse((self.real + span, self.count)));
        self.events.insert(self.count, event);
    }

    /// Runs for `span`.
    pub(crate) fn run(&mut self, span: u64) -> Result<(), String> {
        let end = self.real + span;
        while let Some(Reverse((at, count))) = self.queue.peek().copied()
            && at < end
        {
            self.queue.pop();
            self.real = at;
            let event = self
                .events
                .remove(&count)
                .expect("each event has one entry");
            self.handle(event)?;
        }
        self.real = end;
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Requests(node) => self.requests(node),
            Event::ReadEpoch(node) => {
                let (message, purpose) = self.nodes[node].read_epoch(self.real);
                self.send(node, message, purpose);
                self.after(READ_EPOCH_EVERY, Event::ReadEpoch(node));
                Ok(())
            }
            Event::ToStore(node, message, purpose) => {
                let reply = self.store.handle(self.real, message);
                self.travel(node, |simulation, span| {
                    let reply = reply.clone();
                    simulation.after(span, Event::ToNode(node, reply, purpose));
                });
                Ok(())
            }
            Event::ToNode(node, reply, purpose) => {
                let random = self.draw.number();
                let next = self.nodes[node].handle(self.real, reply, purpose, random);
                if let Some((message, purpose)) = next {
                    self.send(node, message, purpose);
                }
                self.decide_waiting(node)
            }
            Event::TimeOut(node, purpose) => {
                self.nodes[node].timeout(self.real, purpose);
                self.decide_waiting(node)
            }
            Event::Undo(node, Spent { real, at, requests }) => {
                let node = &mut self.nodes[node];
                node.holding.undo(node.now(self.real), at, requests);
                self.checker.undo(real, requests);
                Ok(())
            }
            Event::Fault(fault) => {
                self.inject(fault);
                Ok(())
            }
        }
    }

    fn requests(&mut self, node: usize) -> Result<(), String> {
        let (requests, apart) = match self.traffic[node] {
            Traffic::Steady(apart) => (1, apart),
            Traffic::Bursts(requests, apart) => (self.draw.within(1, requests), apart),
        };
        for _ in 0..requests {
            let cost = match self.draw.one_in(4) {
                true => self.draw.within(1, self.cost_max),
                false => 1,
            };
            let cost = u32::try_from(cost).expect("it is small");
            let outcomes = self.nodes[node].handle_request(self.real, cost);
            self.record(outcomes)?;
            if outcomes.admitted > 0 && self.cost_max > 1 && self.draw.one_in(8) {
                let (real, at) = (self.real, self.nodes[node].now(self.real));
                let requests = outcomes.admitted;
                let later = self.draw.below(2_000_000);
                self.after(later, Event::Undo(node, Spent { real, at, requests }));
            }
        }
        self.poll(node);
        let next = self.draw.within(apart / 2, apart * 3 / 2);
        self.after(next, Event::Requests(node));
        Ok(())
    }

    fn decide_waiting(&mut self, node: usize) -> Result<(), String> {
        let outcomes = self.nodes[node].decide_waiting(self.real);
        self.record(outcomes)?;
        self.poll(node);
        Ok(())
    }

    fn record(&mut self, outcomes: Outcomes) -> Result<(), String> {
        self.outcomes.admitted += outcomes.admitted;
        self.outcomes.rejected += outcomes.rejected;
        self.outcomes.unavailable += outcomes.unavailable;
        if outcomes.admitted > 0 {
            self.checker.spend(self.real, outcomes.admitted)?;
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
        mutate(&mut message, self.mutation);
        self.travel(node, |simulation, span| {
            simulation.after(span, Event::ToStore(node, message.clone(), purpose));
        });
    }

    /// Delivers a message once, twice or not at all.
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

    fn inject(&mut self, fault: Fault) {
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
                self.checker.step_forward(self.real);
                self.store
                    .step_clock(i64::try_from(span).expect("it is small"));
            }
            Fault::Change(node, limit) => {
                let node = &mut self.nodes[node];
                self.checker.end(self.real, *node.limit.promised());
                self.checker.begin(*limit.promised());
                node.limit = limit;
                node.holding.handle_new_limit();
            }
        }
    }
}
