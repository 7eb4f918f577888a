//! Nodes over real sockets.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use anteroom_gossip::{GossipCounts, GossipSettings, OpenError, Secret};
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit_store::conformance::distributed::{self, Distributed};
use anteroom_limit_store::shared::{BoxFuture, SharedCounts};
use tokio::net::UdpSocket;
use tokio::task::yield_now;
use tokio::time::{interval, timeout};

use crate::gossip::support::{START, a_minute, call, event, secret};

const LONG: Duration = Duration::from_secs(60);
/// Period of the checks of a condition.
const LOOK: Duration = Duration::from_millis(5);

async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        let mut looks = interval(LOOK);
        while !is_so() {
            looks.tick().await;
        }
    };
    if timeout(LONG, wait).await.is_err() {
        panic!("{what} did not happen in time");
    }
}

async fn within<T>(what: &str, doing: impl Future<Output = T>) -> T {
    let done = timeout(LONG, doing).await;
    done.unwrap_or_else(|_| panic!("{what} did not end in time"))
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Opens a node with these peers, whose clock stands still.
fn open(
    listen: SocketAddr,
    peers: &[SocketAddr],
    secret: &Secret,
) -> Result<GossipCounts, OpenError> {
    let peers = peers.iter().map(|peer| HostPort {
        host: peer.ip().to_string(),
        port: peer.port(),
    });
    let settings = GossipSettings {
        listen,
        advertise: None,
        peers: peers.collect(),
        interval: Duration::from_millis(100),
    };
    GossipCounts::open(&settings, secret, Arc::new(|| START))
}

/// Opens `count` nodes that know each other; the configured peer of all is the first one.
async fn nodes(count: usize) -> Vec<Arc<GossipCounts>> {
    let mut nodes: Vec<Arc<GossipCounts>> = Vec::new();
    for _ in 0..count {
        let first: Vec<SocketAddr> = nodes
            .first()
            .and_then(|one| one.address())
            .into_iter()
            .collect();
        let node = open(local(0), &first, &secret()).expect("a port is free");
        nodes.push(Arc::new(node));
    }
    for node in &nodes {
        eventually("knowing all", || there(node) == count as u64 - 1).await;
    }
    nodes
}

/// Nodes that exchange reports over sockets.
struct Nodes(Vec<Arc<GossipCounts>>);

impl Distributed for Nodes {
    fn nodes(&self) -> Vec<Arc<dyn SharedCounts>> {
        let nodes = self.0.iter();
        nodes.map(|node| Arc::clone(node) as Arc<_>).collect()
    }

    fn until<'a>(
        &'a self,
        what: &'a str,
        holds: &'a (dyn Fn() -> bool + Sync),
    ) -> BoxFuture<'a, ()> {
        Box::pin(eventually(what, holds))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_are_exact_once_all_know_and_overshoot_by_two_limits() {
    let overshoot = distributed::check(&Nodes(nodes(3).await)).await;
    println!("{overshoot:?}");
}

fn there(node: &GossipCounts) -> u64 {
    event(node, "peer_joined") - event(node, "peer_left")
}

fn left(node: &GossipCounts, policy: &Policy) -> u32 {
    call(node, policy, Cost::Peek).remaining
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_count_together_and_keep_the_counts_of_a_departed_node() {
    let nodes = nodes(3).await;
    let policy = a_minute(100);
    for (node, requests) in nodes.iter().zip([10, 20, 30]) {
        assert!(call(node, &policy, Cost::take(requests)).is_allowed());
    }
    for node in &nodes {
        eventually("receiving all counts", || left(node, &policy) == 40).await;
    }
    assert!(call(&nodes[2], &policy, Cost::take(4)).is_allowed());
    nodes[2].close().await;
    for node in &nodes[..2] {
        eventually("receiving the last counts", || left(node, &policy) == 36).await;
        eventually("noticing the departure", || there(node) == 1).await;
    }
    // It still counts. Its address is free, and a new node there receives all counts.
    assert!(call(&nodes[2], &policy, Cost::ONE).is_allowed());
    let (address, first) = (nodes[2].address().unwrap(), nodes[0].address().unwrap());
    let again = open(address, &[first], &secret()).unwrap();
    for node in [&*nodes[0], &*nodes[1], &again] {
        eventually("receiving a count of the departed node", || {
            left(node, &policy) == 35
        })
        .await;
    }
    assert!(call(&nodes[2], &policy, Cost::ONE).is_allowed());
    within("finishing", nodes[2].finish(true)).await;
    for node in [&*nodes[0], &*nodes[1], &again] {
        eventually("receiving the last request", || left(node, &policy) == 34).await;
    }
    for node in nodes.iter().map(AsRef::as_ref).chain([&again]) {
        within("leaving", node.close()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_secret_is_ignored() {
    let node = open(local(0), &[], &secret()).unwrap();
    let address = node.address().unwrap();
    let other = Secret::new(b"another secret than theirs").unwrap();
    let stranger = open(local(0), &[address], &other).unwrap();
    let policy = a_minute(100);
    assert!(call(&stranger, &policy, Cost::take(99)).is_allowed());
    let socket = UdpSocket::bind(local(0)).await.unwrap();
    for length in [0, 1, 33, 34, 1_200, 9_000] {
        socket.send_to(&vec![1; length], address).await.unwrap();
    }
    eventually("rejecting all", || event(&node, "datagram_rejected") >= 7).await;
    assert_eq!((there(&node), there(&stranger)), (0, 0));
    assert_eq!(left(&node, &policy), 100);
    // Read in this order: the other node continues to send.
    let rejected = event(&node, "datagram_rejected");
    assert!(event(&node, "datagram_received") >= rejected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_counts_alone_until_its_predecessor_frees_the_address() {
    let nodes = nodes(2).await;
    let policy = a_minute(100);
    let (first, second) = (nodes[0].address().unwrap(), nodes[1].address().unwrap());
    let successor = open(second, &[first], &secret()).unwrap();
    assert!(call(&nodes[1], &policy, Cost::take(10)).is_allowed());
    assert!(call(&successor, &policy, Cost::take(20)).is_allowed());
    assert_eq!(left(&successor, &policy), 80);
    within("leaving", nodes[1].close()).await;
    for node in [&nodes[0], &successor] {
        eventually("receiving both counts", || left(node, &policy) == 70).await;
    }
    // A node that waits for an address can still be stopped.
    let third = open(first, &[second], &secret()).unwrap();
    within("stopping", third.close()).await;
}

/// The successor has no other peer, and listens only a while after its predecessor has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_lone_node_reports_all_counts_to_its_successor_once_it_listens() {
    let policy = a_minute(100);
    let node = open(local(0), &[], &secret()).unwrap();
    let address = node.address().unwrap();
    assert!(call(&node, &policy, Cost::take(10)).is_allowed());
    within("leaving", node.close()).await;
    assert!(call(&node, &policy, Cost::take(5)).is_allowed());
    let finishing = async { within("finishing", node.finish(true)).await };
    let following = async {
        // Earlier reports find no listener.
        eventually("reporting", || event(&node, "datagram_sent") > 0).await;
        let successor = open(address, &[], &secret()).unwrap();
        eventually("receiving all counts", || left(&successor, &policy) == 85).await;
    };
    tokio::join!(finishing, following);
}

#[tokio::test]
async fn an_address_of_another_machine_is_an_error_at_the_start() {
    // An address reserved for documentation.
    let foreign = SocketAddr::from(([203, 0, 113, 7], 7_946));
    let error = open(foreign, &[], &secret()).unwrap_err();
    let text = "cannot listen at 203.0.113.7:7946 for gossip of other nodes";
    assert_eq!(error.to_string(), text);
}

/// Prints the overshoot at ten times the limit on a real network; asserts only what holds on any
/// machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_on_loopback_is_exceeded_by_a_bounded_amount() {
    const LIMIT: u32 = 2_000;
    for count in [2_u32, 3, 6] {
        let nodes = nodes(count as usize).await;
        let policy = a_minute(LIMIT);
        // Twice the limit in a second, ten times in five: 40 requests in each step of 10 ms on all
        // nodes together.
        let each_step = 40 / count;
        let clients = nodes.iter().map(|node| {
            let node = Arc::clone(node);
            tokio::spawn(async move {
                let (mut steps, mut admitted) = (interval(Duration::from_millis(10)), 0);
                for _ in 0..500 {
                    steps.tick().await;
                    for _ in 0..each_step {
                        admitted += u32::from(call(&node, &policy, Cost::ONE).is_allowed());
                    }
                    yield_now().await;
                }
                admitted
            })
        });
        let mut admitted = 0;
        for client in clients.collect::<Vec<_>>() {
            admitted += client.await.unwrap();
        }
        let over = f64::from(admitted) / f64::from(LIMIT);
        println!("{count} nodes: {admitted} of {LIMIT} admitted, {over:.3} times the limit");
        assert!((LIMIT..=count * LIMIT).contains(&admitted), "{admitted}");
        // In the end all nodes agree.
        let more = a_minute(LIMIT * count + 1);
        let all_left = LIMIT * count + 1 - admitted;
        for node in &nodes {
            eventually("agreeing", || left(node, &more) == all_left).await;
        }
        for node in &nodes {
            within("leaving", node.close()).await;
        }
    }
}
