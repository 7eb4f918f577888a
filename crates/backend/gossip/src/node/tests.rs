//! What a node says of itself. Whole networks of nodes are in `tests/it/gossip`.

use super::*;

const CLOCK: TimestampUs = TimestampUs(1_767_225_600_000_000);

fn node(at: u8) -> Node {
    let secret = Secret::new(b"a secret of nodes").unwrap();
    let board = CounterTable::new(WriterId(u64::from(at)), &secret, 100);
    let settings = NodeSettings {
        address: address(at),
        generation: 1,
        interval: Duration::from_millis(100),
        seed: 1,
    };
    Node::new(settings, secret, Arc::new(Mutex::new(board)))
}

fn address(at: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, at], 7_946))
}

#[test]
fn who_finds_nobody_says_so_once_and_not_at_once() {
    let mut node = node(1);
    node.expect_others(Duration::from_secs(1));
    node.announce(Duration::from_secs(1), address(2));
    node.poll(Duration::from_secs(10), CLOCK);
    assert!(node.missed_at.is_some(), "it may still find somebody");
    assert!(node.misses_others(Duration::from_secs(11)));
    assert!(!node.misses_others(Duration::from_secs(60)), "it was said");
    // By itself, in its turn.
    node.expect_others(Duration::from_secs(60));
    node.poll(Duration::from_secs(70), CLOCK);
    assert_eq!(node.missed_at, None);
}

#[test]
fn who_finds_somebody_or_expects_nobody_says_nothing() {
    let (mut one, mut other) = (node(1), node(2));
    one.expect_others(Duration::ZERO);
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
    assert!(!one.misses_others(Duration::from_secs(60)));
    assert!(!other.misses_others(Duration::from_secs(60)));
}
