//! Simulation: nodes, a log that loses, doubles and delays, aggregators that move and crash, and a
//! naive counter as the oracle.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use proptest::prelude::*;

use super::{NOW, acquire, an_hour, slot};
use crate::message;
use crate::node::Node;
use crate::partitions::Partitions;
use crate::stats::{NodeCount, NodeId, SlotId, total};

pub(super) const PARTITIONS: usize = 2;
pub(super) const NODES: usize = 3;
const CLIENTS: u128 = 3;

fn partitions() -> Partitions {
    Partitions::among(PARTITIONS, PARTITIONS).unwrap()
}

pub(super) fn partition(id: SlotId) -> usize {
    usize::from(partitions().partition(id.name))
}

/// Step of the simulation.
#[derive(Clone, Debug)]
enum Step {
    Request {
        node: usize,
        client: u128,
        cost: u32,
    },
    Refund {
        node: usize,
        client: u128,
        cost: u32,
    },
    Send {
        node: usize,
        fate: Fate,
    },
    Read {
        partition: usize,
        count: usize,
    },
    Publish {
        node: usize,
        fate: Fate,
    },
    Receive {
        node: usize,
        count: usize,
    },
    Move {
        partition: usize,
        node: usize,
    },
    Crash {
        node: usize,
    },
    Wait {
        secs: u64,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    Arrives,
    ArrivesTwice,
    IsLost,
    IsRejected,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Arrives),
        1 => Just(Fate::ArrivesTwice),
        1 => Just(Fate::IsLost),
        1 => Just(Fate::IsRejected),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (node, partition) = (0..NODES, 0..PARTITIONS);
    let (client, count) = (0..CLIENTS, 0..6_usize);
    prop_oneof![
        6 => (node.clone(), client.clone(), 1..4_u32)
            .prop_map(|(node, client, cost)| Step::Request { node, client, cost }),
        1 => (node.clone(), client, 1..4_u32)
            .prop_map(|(node, client, cost)| Step::Refund { node, client, cost }),
        4 => (node.clone(), fate()).prop_map(|(node, fate)| Step::Send { node, fate }),
        4 => (partition.clone(), count.clone())
            .prop_map(|(partition, count)| Step::Read { partition, count }),
        4 => (node.clone(), fate()).prop_map(|(node, fate)| Step::Publish { node, fate }),
        4 => (node.clone(), count).prop_map(|(node, count)| Step::Receive { node, count }),
        1 => (partition, node.clone())
            .prop_map(|(partition, node)| Step::Move { partition, node }),
        1 => node.prop_map(|node| Step::Crash { node }),
        2 => (1..5_u64).prop_map(|secs| Step::Wait { secs }),
    ]
}

/// Reader of a partition of calls.
#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    node: usize,
    read: usize,
    kept: usize,
}

/// Nodes, a log between them, and the oracle's count of each process that ever ran.
pub(super) struct Simulation {
    pub(super) nodes: Vec<(NodeId, Node)>,
    received: Vec<usize>,
    requests: [Vec<Vec<u8>>; PARTITIONS],
    readers: [Reader; PARTITIONS],
    totals: Vec<Vec<u8>>,
    /// Partitions that can be neither written nor read.
    pub(super) is_down: [bool; PARTITIONS],
    pub(super) at: Duration,
    next_id: u64,
    counted: BTreeMap<(NodeId, u128), NodeCount>,
    ended: Vec<NodeId>,
    has_crashes: bool,
}

impl Simulation {
    pub(super) fn new(has_crashes: bool) -> Self {
        let mut simulation = Self {
            nodes: Vec::new(),
            received: vec![0; NODES],
            requests: Default::default(),
            readers: Default::default(),
            totals: Vec::new(),
            is_down: Default::default(),
            at: Duration::ZERO,
            next_id: 1,
            counted: BTreeMap::new(),
            ended: Vec::new(),
            has_crashes,
        };
        for _ in 0..NODES {
            let node = simulation.new_node();
            simulation.nodes.push(node);
        }
        simulation
    }

    fn new_node(&mut self) -> (NodeId, Node) {
        let id = NodeId(self.next_id);
        self.next_id += 1;
        let mut node = Node::new(id, 100);
        node.divide(partitions());
        (id, node)
    }

    pub(super) fn estimate(&self, node: usize, client: u128) -> u32 {
        self.nodes[node].1.board.total(slot(client))
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Request { node, client, cost } => {
                let (id, target) = &mut self.nodes[node];
                let verdict = acquire(target, &an_hour(1_000_000), client, Cost::take(cost));
                assert!(verdict.is_allowed());
                let counted = self.counted.entry((*id, client)).or_default();
                counted.taken += cost;
            }
            Step::Refund { node, client, cost } => {
                let before = self.estimate(node, client);
                let (id, target) = &mut self.nodes[node];
                acquire(target, &an_hour(1_000_000), client, Cost::refund(cost));
                let id = *id;
                let by = before - self.estimate(node, client);
                assert_eq!(by, cost.min(before));
                let counted = self.counted.entry((id, client)).or_default();
                counted.refunded += by;
            }
            Step::Send { node, fate } => self.send(node, fate),
            Step::Read { partition, count } => self.read(partition, count),
            Step::Publish { node, fate } => self.publish(node, fate),
            Step::Receive { node, count } => self.receive(node, count),
            Step::Move { partition, node } => {
                let reader = &mut self.readers[partition];
                reader.node = node;
                reader.read = reader.kept;
            }
            Step::Crash { node } if self.has_crashes => self.crash(node),
            Step::Crash { .. } => {}
            Step::Wait { secs } => self.at += Duration::from_secs(secs),
        }
    }

    fn send(&mut self, node: usize, fate: Fate) {
        let (_, node) = &mut self.nodes[node];
        node.tick(NOW, self.at);
        for report in node.reports_to_send(100, self.at) {
            let to = partition(report.id);
            let log = &mut self.requests[to];
            let bytes = message::encode(&report);
            match fate {
                _ if self.is_down[to] => {}
                Fate::Arrives => log.push(bytes),
                Fate::ArrivesTwice => log.extend([bytes.clone(), bytes]),
                Fate::IsLost => {}
                Fate::IsRejected => node.send_again(report.id),
            }
        }
    }

    fn read(&mut self, partition: usize, count: usize) {
        let reader = &mut self.readers[partition];
        let (_, node) = &mut self.nodes[reader.node];
        let log = &self.requests[partition];
        let count = if self.is_down[partition] { 0 } else { count };
        let to = log.len().min(reader.read + count);
        for bytes in &log[reader.read..to] {
            node.receive_report(bytes, NOW);
        }
        reader.read = to;
    }

    fn publish(&mut self, at: usize, fate: Fate) {
        let (_, node) = &mut self.nodes[at];
        for total in node.totals_to_publish(100) {
            let bytes = message::encode(&total);
            match fate {
                _ if self.is_down[partition(total.id)] => node.publish_again(total.id),
                Fate::IsRejected | Fate::IsLost => node.publish_again(total.id),
                Fate::Arrives => self.totals.push(bytes),
                Fate::ArrivesTwice => self.totals.extend([bytes.clone(), bytes]),
            }
        }
        // A partition is down in both topics, so nothing is read either.
        if matches!(fate, Fate::Arrives | Fate::ArrivesTwice) {
            let readers = self.readers.iter_mut();
            for reader in readers.filter(|reader| reader.node == at) {
                reader.kept = reader.read;
            }
        }
    }

    fn receive(&mut self, at: usize, count: usize) {
        let to = self.totals.len().min(self.received[at] + count);
        for bytes in &self.totals[self.received[at]..to] {
            self.nodes[at].1.receive_total(bytes, NOW);
        }
        self.received[at] = to;
    }

    /// Replaces a node by a new process without state; another node takes over its partitions.
    fn crash(&mut self, at: usize) {
        let fresh = self.new_node();
        let (id, _) = std::mem::replace(&mut self.nodes[at], fresh);
        self.ended.push(id);
        self.received[at] = 0;
        for reader in self.readers.iter_mut().filter(|reader| reader.node == at) {
            reader.node = (at + 1) % NODES;
            reader.read = reader.kept;
        }
    }

    /// Returns the true count of a client: of ended processes, as much as they had sent.
    fn truth(&self, client: u128) -> u32 {
        let mut sent: BTreeMap<NodeId, NodeCount> = BTreeMap::new();
        let logs = self.requests.iter().flatten().chain(&self.totals);
        let messages = logs.filter_map(|bytes| message::decode(bytes));
        for message in messages.filter(|message| message.id == slot(client)) {
            for (node, count) in message.stats {
                let known = sent.entry(node).or_default();
                *known = known.join(count);
            }
        }
        sent.retain(|node, _| self.ended.contains(node));
        let living = self.counted.iter();
        let living = living.filter(|((node, of), _)| *of == client && !self.ended.contains(node));
        total(living.map(|(_, count)| *count).chain(sent.into_values()))
    }

    /// Sends, reads and publishes everything, except in partitions that are down.
    pub(super) fn exchange_all(&mut self) {
        for node in 0..NODES {
            self.send(node, Fate::Arrives);
        }
        for partition in 0..PARTITIONS {
            self.read(partition, usize::MAX / 2);
        }
        for node in 0..NODES {
            self.publish(node, Fate::Arrives);
        }
        for node in 0..NODES {
            self.receive(node, usize::MAX / 2);
        }
    }

    fn settle(&mut self) {
        for _ in 0..12 {
            self.at += Duration::from_secs(4);
            self.exchange_all();
            if self.nodes.iter().all(|(_, node)| node.board.is_quiet()) {
                return;
            }
        }
        panic!("nodes still wait for reports to come back");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn all_nodes_converge_to_the_true_counts_despite_losses(
        steps in prop::collection::vec(step(), 0..60),
        has_crashes in any::<bool>(),
    ) {
        let mut simulation = Simulation::new(has_crashes);
        for step in &steps {
            simulation.run(step);
        }
        simulation.settle();
        for client in 0..CLIENTS {
            for node in 0..NODES {
                prop_assert_eq!(simulation.estimate(node, client), simulation.truth(client));
            }
        }
    }

    #[test]
    fn no_node_counts_a_request_twice_or_omits_its_own(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut simulation = Simulation::new(true);
        let mut admitted = [0; 3];
        for step in &steps {
            match *step {
                // Refunds are received later than acquires.
                Step::Refund { .. } => continue,
                Step::Request { client, cost, .. } => {
                    admitted[usize::try_from(client).unwrap()] += cost;
                }
                _ => {}
            }
            simulation.run(step);
            for (client, admitted) in (0..CLIENTS).zip(admitted) {
                for (node, (id, _)) in simulation.nodes.iter().enumerate() {
                    let own = simulation.counted.get(&(*id, client));
                    let own = own.map_or(0, |count| count.taken);
                    let estimate = simulation.estimate(node, client);
                    prop_assert!((own..=admitted).contains(&estimate), "{estimate}");
                }
            }
        }
    }
}
