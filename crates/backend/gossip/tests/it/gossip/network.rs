//! Simulated network: a seed decides the delay and loss of each datagram.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_gossip::{CounterTable, GossipCounts, Node, NodeSettings, WriterId};
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::shared::TestTime;
use parking_lot::Mutex;

use crate::gossip::support::{START, a_minute, call, call_of, event, secret};

/// Step of simulated time.
pub(crate) const STEP: Duration = Duration::from_millis(10);
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// Conditions of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) delay: Duration,
    /// Datagrams lost of a thousand.
    pub(crate) lost_of_1000: u64,
    pub(crate) seed: u64,
}

pub(crate) struct Network {
    conditions: Conditions,
    now: Duration,
    time: TestTime,
    nodes: BTreeMap<SocketAddr, Member>,
    /// Nodes that have left and still count.
    behind: Vec<(SocketAddr, Member)>,
    under_way: BTreeMap<(Duration, u64), (SocketAddr, Vec<u8>)>,
    sent: u64,
    random: u64,
    /// Node that is cut off from all others.
    isolated: Option<SocketAddr>,
}

pub(crate) struct Member {
    node: Node,
    pub(crate) counts: GossipCounts,
    table: Arc<Mutex<CounterTable>>,
}

/// Returns the address of a node.
pub(crate) fn address(at: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, at], 7_946))
}

impl Network {
    pub(crate) fn new(conditions: Conditions) -> Self {
        let time = TestTime::default();
        time.set(START);
        Self {
            conditions,
            now: Duration::ZERO,
            time,
            nodes: BTreeMap::new(),
            behind: Vec::new(),
            under_way: BTreeMap::new(),
            sent: 0,
            random: conditions.seed,
            isolated: None,
        }
    }

    /// Creates a network of `count` nodes that know each other.
    pub(crate) fn of(count: u8, conditions: Conditions) -> Self {
        let mut network = Self::new(conditions);
        for at in 1..=count {
            network.start(at, u64::from(at));
        }
        network.run(Duration::from_secs(20));
        for member in network.nodes.values() {
            assert_eq!(member.node.peers().len(), usize::from(count) - 1);
        }
        network
    }

    /// Starts a node whose configured peer is the first one.
    pub(crate) fn start(&mut self, at: u8, writer: u64) {
        let table = CounterTable::new(WriterId(writer), &secret(), 10_000);
        let table = Arc::new(Mutex::new(table));
        let settings = NodeSettings {
            address: address(at),
            generation: self.time.now().0 / 1_000,
            interval: INTERVAL,
            seed: self.conditions.seed + writer,
        };
        let member = Member {
            node: Node::new(settings, secret(), Arc::clone(&table)),
            counts: GossipCounts::on(Arc::clone(&table), self.time.clone()),
            table,
        };
        self.nodes.insert(address(at), member);
    }

    /// Removes a node as if it had been killed.
    pub(crate) fn kill(&mut self, at: u8) {
        self.nodes.remove(&address(at));
    }

    pub(crate) fn leave(&mut self, at: u8) {
        let Some(mut member) = self.nodes.remove(&address(at)) else {
            panic!("{at} is there");
        };
        member.node.leave(self.now, self.time.now());
        self.send(address(at), member.node.take_outbox());
        self.behind.push((address(at), member));
    }

    /// Returns the counts of the node that left last.
    pub(crate) fn counts_of_departed(&self) -> &GossipCounts {
        let last = self.behind.last();
        &last.expect("a node has left").1.counts
    }

    /// Ends the node that left last.
    pub(crate) fn finish(&mut self) {
        let (at, mut member) = self.behind.pop().expect("a node has left");
        member.node.report_last(self.time.now());
        self.send(at, member.node.take_outbox());
    }

    /// Cuts this node off from all others, or reconnects it.
    pub(crate) fn isolate(&mut self, at: Option<u8>) {
        self.isolated = at.map(address);
    }

    pub(crate) fn counts(&self, at: u8) -> &GossipCounts {
        &self.nodes[&address(at)].counts
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &GossipCounts> {
        self.nodes.values().map(|member| &member.counts)
    }

    pub(crate) fn run(&mut self, length: Duration) {
        let until = self.now + length;
        while self.now < until {
            self.step();
        }
    }

    /// Advances the time by one step.
    pub(crate) fn step(&mut self) {
        self.now += STEP;
        let step = DurationUs(u64::try_from(STEP.as_micros()).expect("a step is short"));
        self.time.set(self.time.now() + step);
        while let Some(first) = self.under_way.first_entry() {
            if first.key().0 > self.now {
                break;
            }
            let (to, datagram) = first.remove();
            let (now, by_clock) = (self.now, self.time.now());
            let Some(member) = self.nodes.get_mut(&to) else {
                continue;
            };
            assert!(member.node.handle_datagram(now, by_clock, &datagram));
            let out = member.node.take_outbox();
            self.send(to, out);
        }
        self.step_departed();
        let addresses: Vec<SocketAddr> = self.nodes.keys().copied().collect();
        // As in production, missing peers get announcements again and again.
        let announces = self.now.as_millis().is_multiple_of(2_000);
        for at in addresses {
            let (now, by_clock) = (self.now, self.time.now());
            let Some(member) = self.nodes.get_mut(&at) else {
                continue;
            };
            if announces {
                member.node.announce(now, address(1));
            }
            member.node.poll(now, by_clock);
            let out = member.node.take_outbox();
            self.send(at, out);
        }
    }

    fn step_departed(&mut self) {
        if !self.now.as_millis().is_multiple_of(INTERVAL.as_millis()) {
            return;
        }
        let by_clock = self.time.now();
        let sent = self.behind.iter_mut().map(|(at, member)| {
            member.node.report_departed(by_clock);
            (*at, member.node.take_outbox())
        });
        for (at, out) in sent.collect::<Vec<_>>() {
            self.send(at, out);
        }
    }

    fn send(&mut self, from: SocketAddr, out: Vec<(SocketAddr, Vec<u8>)>) {
        for (to, datagram) in out {
            assert!(datagram.len() <= anteroom_gossip::DATAGRAM_LARGEST);
            let is_parted = self.isolated.is_some_and(|one| from == one || to == one);
            if is_parted || self.draw() % 1_000 < self.conditions.lost_of_1000 {
                continue;
            }
            self.sent += 1;
            // Between half the delay and all of it, so that datagrams overtake each other.
            let step = u64::try_from(self.conditions.delay.as_millis()).expect("a delay is short");
            let delay = Duration::from_millis(step / 2 + self.draw() % (step / 2 + 1));
            self.under_way
                .insert((self.now + delay, self.sent), (to, datagram));
        }
    }

    fn draw(&mut self) -> u64 {
        // A linear congruential generator (Knuth's MMIX); its upper half.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// Asserts that all nodes have the same sums.
    pub(crate) fn assert_agreement(&self) {
        let mut sums = self.nodes.values().map(|member| member.table.lock().sums());
        let first = sums.next();
        for other in sums {
            assert_eq!(Some(other), first);
        }
    }
}

pub(crate) const RELIABLE: Conditions = Conditions {
    delay: Duration::from_millis(20),
    lost_of_1000: 0,
    seed: 1,
};

pub(crate) fn left(counts: &GossipCounts, policy: &Policy) -> u32 {
    call(counts, policy, Cost::Peek).remaining
}

pub(crate) fn take(counts: &GossipCounts, policy: &Policy, requests: u32) {
    assert!(call(counts, policy, Cost::take(requests)).is_allowed());
}

/// Returns a limit per hour, which outlasts a test.
pub(crate) fn an_hour(requests: u32) -> Policy {
    let rate = Rate::new(requests, DurationUs::from_secs(3_600)).expect("it is in range");
    Policy::FixedWindow(FixedWindow::new(rate))
}

#[test]
fn a_joiner_receives_all_counts_including_those_of_departed_nodes() {
    let policy = an_hour(100);
    let mut network = Network::of(3, RELIABLE);
    take(network.counts(1), &policy, 10);
    take(network.counts(2), &policy, 20);
    take(network.counts(3), &policy, 30);
    network.run(2 * INTERVAL);
    for counts in network.all() {
        assert_eq!(left(counts, &policy), 40);
    }
    // One node leaves right after a request, and one is killed an interval after its last.
    take(network.counts(3), &policy, 5);
    network.leave(3);
    network.kill(2);
    network.run(Duration::from_secs(15));
    assert_eq!(left(network.counts(1), &policy), 35);
    assert_eq!(event(network.counts(1), "peer_left"), 2);
    // The second node starts again, and another one joins.
    network.start(2, 12);
    network.start(4, 14);
    network.run(Duration::from_secs(5));
    for counts in network.all() {
        assert_eq!(left(counts, &policy), 35);
    }
    take(network.counts(2), &policy, 1);
    network.run(2 * INTERVAL);
    network.assert_agreement();
    assert_eq!(left(network.counts(4), &policy), 34);
}

/// The peers see it leave and join at once. It still gets the fast report, not only the slow
/// repetition.
#[test]
fn a_node_restarted_in_place_receives_all_counts_at_once() {
    const CLIENTS: u128 = 5_000;
    let policy = an_hour(100);
    let mut network = Network::of(2, RELIABLE);
    for client in 0..CLIENTS {
        let verdict = call_of(network.counts(1), client, &policy, Cost::ONE);
        assert!(verdict.is_allowed());
    }
    network.run(Duration::from_secs(20));
    network.kill(2);
    network.start(2, 12);
    network.run(Duration::from_secs(4));
    let known = |client| call_of(network.counts(2), client, &policy, Cost::Peek).remaining == 99;
    let known = (0..CLIENTS).filter(|client| known(*client)).count();
    assert_eq!(known as u128, CLIENTS);
}

#[test]
fn an_isolated_node_counts_alone_and_all_nodes_converge_afterwards() {
    let policy = an_hour(100);
    let mut network = Network::of(3, RELIABLE);
    network.isolate(Some(3));
    network.run(Duration::from_secs(15));
    // Each side admits the whole limit.
    take(network.counts(1), &policy, 100);
    take(network.counts(3), &policy, 100);
    network.run(Duration::from_secs(5));
    assert_eq!(left(network.counts(2), &policy), 0);
    let there = |counts: &GossipCounts| event(counts, "peer_joined") - event(counts, "peer_left");
    assert_eq!(there(network.counts(3)), 0);
    assert_eq!(there(network.counts(1)), 1);
    network.isolate(None);
    network.run(Duration::from_secs(60));
    assert_eq!(there(network.counts(3)), 2);
    network.assert_agreement();
    assert!(!call(network.counts(2), &policy, Cost::ONE).is_allowed());
}

#[test]
fn a_node_whose_clock_was_set_back_can_join_again() {
    let policy = an_hour(100);
    let mut network = Network::of(2, RELIABLE);
    network.kill(2);
    network.run(Duration::from_secs(1));
    // The peers know a node at this address that started later.
    let now = network.time.now();
    network.time.set(TimestampUs(now.0 - 3 * 3_600_000_000));
    network.start(2, 12);
    network.time.set(now);
    network.run(Duration::from_secs(60));
    take(network.counts(2), &policy, 7);
    network.run(2 * INTERVAL);
    assert_eq!(left(network.counts(1), &policy), 93);
}

#[test]
fn lost_datagrams_delay_convergence_and_change_nothing_else() {
    for seed in 1..=10 {
        let policy = a_minute(1_000_000);
        let conditions = Conditions {
            lost_of_1000: 100,
            seed,
            ..RELIABLE
        };
        let mut network = Network::of(4, conditions);
        for at in 0..200_u32 {
            let node = u8::try_from(at % 4).unwrap() + 1;
            take(network.counts(node), &policy, at + 1);
            network.step();
        }
        // The slow repetition at the latest.
        network.run(Duration::from_secs(15));
        network.assert_agreement();
    }
}

/// The library may declare a node down whose responses were lost. Then both sides must find each
/// other again, though neither has another peer.
#[test]
fn a_node_declared_down_by_mistake_is_found_again() {
    let mut flaps = 0;
    for seed in 1..=6 {
        let conditions = Conditions {
            lost_of_1000: 100,
            seed,
            ..RELIABLE
        };
        let mut network = Network::of(2, conditions);
        let mut alone = Duration::ZERO;
        for _ in 0..20_000 {
            network.step();
            let see = |member: &Member| member.node.peers().len() == 1;
            let is_whole = network.nodes.values().all(see);
            flaps += u32::from(!is_whole && alone.is_zero());
            alone = if is_whole {
                Duration::ZERO
            } else {
                alone + STEP
            };
            assert!(
                alone < Duration::from_secs(10),
                "seed {seed} at {:?}",
                network.now
            );
        }
    }
    assert!(
        flaps > 0,
        "no node was ever declared down: this tests nothing"
    );
}
