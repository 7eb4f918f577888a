//! Nodes, a log that loses, doubles and delays, aggregators that change and crash, and a naive
//! counter beside them.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use proptest::prelude::*;

use super::{NOW, an_hour, charge_with, slot};
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

/// What happens.
#[derive(Clone, Debug)]
enum Step {
    Call {
        node: usize,
        client: u128,
        cost: u32,
    },
    Refund {
        node: usize,
        client: u128,
        cost: u32,
    },
    Tell {
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
    Hear {
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
    IsRefused,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Arrives),
        1 => Just(Fate::ArrivesTwice),
        1 => Just(Fate::IsLost),
        1 => Just(Fate::IsRefused),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (node, partition) = (0..NODES, 0..PARTITIONS);
    let (client, count) = (0..CLIENTS, 0..6_usize);
    prop_oneof![
        6 => (node.clone(), client.clone(), 1..4_u32)
            .prop_map(|(node, client, cost)| Step::Call { node, client, cost }),
        1 => (node.clone(), client, 1..4_u32)
            .prop_map(|(node, client, cost)| Step::Refund { node, client, cost }),
        4 => (node.clone(), fate()).prop_map(|(node, fate)| Step::Tell { node, fate }),
        4 => (partition.clone(), count.clone())
            .prop_map(|(partition, count)| Step::Read { partition, count }),
        4 => (node.clone(), fate()).prop_map(|(node, fate)| Step::Publish { node, fate }),
        4 => (node.clone(), count).prop_map(|(node, count)| Step::Hear { node, count }),
        1 => (partition, node.clone())
            .prop_map(|(partition, node)| Step::Move { partition, node }),
        1 => node.prop_map(|node| Step::Crash { node }),
        2 => (1..5_u64).prop_map(|secs| Step::Wait { secs }),
    ]
}

/// How far a partition of calls was read.
#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    node: usize,
    read: usize,
    kept: usize,
}

/// Nodes, a log between them, and what a naive counter says of each process that there ever was.
pub(super) struct World {
    pub(super) nodes: Vec<(NodeId, Node)>,
    heard: Vec<usize>,
    calls: [Vec<Vec<u8>>; PARTITIONS],
    readers: [Reader; PARTITIONS],
    totals: Vec<Vec<u8>>,
    /// Nothing gets there, and nothing from there.
    pub(super) is_down: [bool; PARTITIONS],
    pub(super) at: Duration,
    next_id: u64,
    counted: BTreeMap<(NodeId, u128), NodeCount>,
    is_gone: Vec<NodeId>,
    has_crashes: bool,
}

impl World {
    pub(super) fn new(has_crashes: bool) -> Self {
        let mut world = Self {
            nodes: Vec::new(),
            heard: vec![0; NODES],
            calls: Default::default(),
            readers: Default::default(),
            totals: Vec::new(),
            is_down: Default::default(),
            at: Duration::ZERO,
            next_id: 1,
            counted: BTreeMap::new(),
            is_gone: Vec::new(),
            has_crashes,
        };
        for _ in 0..NODES {
            let node = world.new_node();
            world.nodes.push(node);
        }
        world
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
            Step::Call { node, client, cost } => {
                let (id, asked) = &mut self.nodes[node];
                let verdict = charge_with(asked, &an_hour(1_000_000), client, Cost::take(cost));
                assert!(verdict.is_admitted());
                let counted = self.counted.entry((*id, client)).or_default();
                counted.taken += cost;
            }
            Step::Refund { node, client, cost } => {
                let before = self.estimate(node, client);
                let (id, asked) = &mut self.nodes[node];
                charge_with(asked, &an_hour(1_000_000), client, Cost::refund(cost));
                let id = *id;
                let by = before - self.estimate(node, client);
                assert_eq!(by, cost.min(before));
                let counted = self.counted.entry((id, client)).or_default();
                counted.given_back += by;
            }
            Step::Tell { node, fate } => self.tell(node, fate),
            Step::Read { partition, count } => self.read(partition, count),
            Step::Publish { node, fate } => self.publish(node, fate),
            Step::Hear { node, count } => self.hear(node, count),
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

    fn tell(&mut self, node: usize, fate: Fate) {
        let (_, node) = &mut self.nodes[node];
        node.tick(NOW, self.at);
        for told in node.calls_to_tell(100, self.at) {
            let to = partition(told.id);
            let log = &mut self.calls[to];
            let bytes = message::encode(&told);
            match fate {
                _ if self.is_down[to] => {}
                Fate::Arrives => log.push(bytes),
                Fate::ArrivesTwice => log.extend([bytes.clone(), bytes]),
                Fate::IsLost => {}
                Fate::IsRefused => node.not_told(told.id),
            }
        }
    }

    fn read(&mut self, partition: usize, count: usize) {
        let reader = &mut self.readers[partition];
        let (_, node) = &mut self.nodes[reader.node];
        let log = &self.calls[partition];
        let count = if self.is_down[partition] { 0 } else { count };
        let to = log.len().min(reader.read + count);
        for bytes in &log[reader.read..to] {
            node.hear_call(bytes, NOW);
        }
        reader.read = to;
    }

    fn publish(&mut self, at: usize, fate: Fate) {
        let (_, node) = &mut self.nodes[at];
        for total in node.totals_to_publish(100) {
            let bytes = message::encode(&total);
            match fate {
                _ if self.is_down[partition(total.id)] => node.publish_again(total.id),
                Fate::IsRefused | Fate::IsLost => node.publish_again(total.id),
                Fate::Arrives => self.totals.push(bytes),
                Fate::ArrivesTwice => self.totals.extend([bytes.clone(), bytes]),
            }
        }
        // What is down is so for partitions of both topics, so nothing is read either.
        if matches!(fate, Fate::Arrives | Fate::ArrivesTwice) {
            let readers = self.readers.iter_mut();
            for reader in readers.filter(|reader| reader.node == at) {
                reader.kept = reader.read;
            }
        }
    }

    fn hear(&mut self, at: usize, count: usize) {
        let to = self.totals.len().min(self.heard[at] + count);
        for bytes in &self.totals[self.heard[at]..to] {
            self.nodes[at].1.hear_total(bytes, NOW);
        }
        self.heard[at] = to;
    }

    /// Another process takes its place, which knows nothing; and another node its partitions.
    fn crash(&mut self, at: usize) {
        let fresh = self.new_node();
        let (id, _) = std::mem::replace(&mut self.nodes[at], fresh);
        self.is_gone.push(id);
        self.heard[at] = 0;
        for reader in self.readers.iter_mut().filter(|reader| reader.node == at) {
            reader.node = (at + 1) % NODES;
            reader.read = reader.kept;
        }
    }

    /// What a client's calls come to: of processes that are gone, as much as they had told anybody.
    fn truth(&self, client: u128) -> u32 {
        let mut told: BTreeMap<NodeId, NodeCount> = BTreeMap::new();
        let logs = self.calls.iter().flatten().chain(&self.totals);
        let messages = logs.filter_map(|bytes| message::decode(bytes));
        for message in messages.filter(|message| message.id == slot(client)) {
            for (node, figure) in message.stats {
                let known = told.entry(node).or_default();
                *known = known.join(figure);
            }
        }
        told.retain(|node, _| self.is_gone.contains(node));
        let living = self.counted.iter();
        let living = living.filter(|((node, of), _)| *of == client && !self.is_gone.contains(node));
        total(living.map(|(_, figure)| *figure).chain(told.into_values()))
    }

    /// All is told, read, published and heard, as far as nothing is down.
    pub(super) fn go_round(&mut self) {
        for node in 0..NODES {
            self.tell(node, Fate::Arrives);
        }
        for partition in 0..PARTITIONS {
            self.read(partition, usize::MAX / 2);
        }
        for node in 0..NODES {
            self.publish(node, Fate::Arrives);
        }
        for node in 0..NODES {
            self.hear(node, usize::MAX / 2);
        }
    }

    fn come_to_rest(&mut self) {
        for _ in 0..12 {
            self.at += Duration::from_secs(4);
            self.go_round();
            if self.nodes.iter().all(|(_, node)| node.board.is_quiet()) {
                return;
            }
        }
        panic!("nodes still wait for what they told");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn in_the_end_all_nodes_know_what_was_admitted_despite_losses(
        steps in prop::collection::vec(step(), 0..60),
        has_crashes in any::<bool>(),
    ) {
        let mut world = World::new(has_crashes);
        for step in &steps {
            world.run(step);
        }
        world.come_to_rest();
        for client in 0..CLIENTS {
            for node in 0..NODES {
                prop_assert_eq!(world.estimate(node, client), world.truth(client));
            }
        }
    }

    #[test]
    fn no_node_ever_counts_a_call_twice_or_leaves_out_its_own(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut world = World::new(true);
        let mut admitted = [0; 3];
        for step in &steps {
            match *step {
                // What is given back is heard later than what was taken.
                Step::Refund { .. } => continue,
                Step::Call { client, cost, .. } => {
                    admitted[usize::try_from(client).unwrap()] += cost;
                }
                _ => {}
            }
            world.run(step);
            for (client, admitted) in (0..CLIENTS).zip(admitted) {
                for (node, (id, _)) in world.nodes.iter().enumerate() {
                    let own = world.counted.get(&(*id, client));
                    let own = own.map_or(0, |figure| figure.taken);
                    let estimate = world.estimate(node, client);
                    prop_assert!((own..=admitted).contains(&estimate), "{estimate}");
                }
            }
        }
    }
}
