//! Warnings of a node. Whole networks of nodes are in `tests/it/gossip`.

use super::*;

const CLOCK: TimestampUs = TimestampUs(1_767_225_600_000_000);

fn node(at: u8) -> Node {
    let secret = Secret::new(b"a secret of nodes").unwrap();
    let table = CounterTable::new(WriterId(u64::from(at)), &secret, 100);
    let settings = NodeSettings {
        address: address(at),
        generation: 1,
        interval: Duration::from_millis(100),
        seed: 1,
    };
    Node::new(settings, secret, Arc::new(Mutex::new(table)))
}

fn address(at: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, at], 7_946))
}

#[test]
fn a_node_without_peers_warns_once_and_not_at_once() {
    let mut node = node(1);
    node.expect_peers(Duration::from_secs(1));
    node.announce(Duration::from_secs(1), address(2));
    node.poll(Duration::from_secs(10), CLOCK);
    assert!(node.warn_alone_at.is_some(), "it may still find a peer");
    assert!(node.should_warn_alone(Duration::from_secs(11)));
    assert!(
        !node.should_warn_alone(Duration::from_secs(60)),
        "it warned already"
    );
    // `poll` warns, too.
    node.expect_peers(Duration::from_secs(60));
    node.poll(Duration::from_secs(70), CLOCK);
    assert_eq!(node.warn_alone_at, None);
}

#[test]
fn a_node_with_peers_or_without_expectations_does_not_warn() {
    let (mut one, mut other) = (node(1), node(2));
    one.expect_peers(Duration::ZERO);
    one.announce(Duration::ZERO, address(2));
    for _ in 0..3 {
        for (_, datagram) in one.take_outbox() {
            assert!(other.handle_datagram(Duration::ZERO, CLOCK, &datagram));
        }
        for (_, datagram) in other.take_outbox() {
            assert!(one.handle_datagram(Duration::ZERO, CLOCK, &datagram));
        }
    }
    assert_eq!(one.peers(), [address(2)]);
    assert!(!one.should_warn_alone(Duration::from_secs(60)));
    assert!(!other.should_warn_alone(Duration::from_secs(60)));
}
