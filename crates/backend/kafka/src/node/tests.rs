//! Decisions and messages of a node without a log.

mod outage;
mod simulation;

use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::SharedAcquire;

use super::*;

const NOW: TimestampUs = TimestampUs(1_767_225_600_000_000);
const HOUR: DurationUs = DurationUs::from_secs(3_600);

fn an_hour(requests: u32) -> Policy {
    Policy::FixedWindow(FixedWindow::new(Rate::new(requests, HOUR).unwrap()))
}

fn acquire(node: &mut Node, policy: &Policy, client: u128, cost: Cost) -> Verdict {
    let acquire = SharedAcquire {
        limit: "api",
        policy,
        key: ClientKey(client),
        cost,
    };
    let mut verdicts = Vec::new();
    assert!(node.acquire(&[acquire], NOW, &mut verdicts));
    verdicts[0]
}

fn slot(client: u128) -> SlotId {
    SlotId {
        name: names::client("api", HOUR, ClientKey(client)),
        index: NOW.0 / HOUR.0,
    }
}

#[test]
fn a_received_total_counts_at_once() {
    let mut nodes = [1, 2].map(|id| Node::new(NodeId(id), 100));
    let policy = an_hour(5);
    assert!(acquire(&mut nodes[0], &policy, 1, Cost::take(3)).is_allowed());
    let [first, second] = &mut nodes;
    for report in first.reports_to_send(100, Duration::ZERO) {
        second.receive_report(&message::encode(&report), NOW);
    }
    let left = acquire(second, &policy, 1, Cost::take(2)).remaining;
    assert_eq!(left, 0);
    for total in second.totals_to_publish(100) {
        first.receive_total(&message::encode(&total), NOW);
    }
    assert!(!acquire(first, &policy, 1, Cost::ONE).is_allowed());
    assert_eq!(acquire(first, &policy, 1, Cost::refund(9)).remaining, 5);
}

/// A flood of made-up clients must not admit clients without a slot unlimited.
#[test]
fn a_client_without_a_slot_is_counted_in_an_overflow_entry() {
    let mut node = Node::new(NodeId(1), 8);
    let policy = an_hour(5);
    for client in 0..8 {
        acquire(&mut node, &policy, client, Cost::ONE);
    }
    // 100 and 164 share an overflow entry.
    let left = |node: &mut Node, client, cost| acquire(node, &policy, client, cost).remaining;
    assert_eq!(left(&mut node, 100, Cost::take(3)), 2);
    assert_eq!(left(&mut node, 164, Cost::take(2)), 0);
    assert!(!acquire(&mut node, &policy, 100, Cost::ONE).is_allowed());
    assert_eq!(left(&mut node, 101, Cost::ONE), 4);
    assert_eq!(left(&mut node, 7, Cost::ONE), 3);
    let other = SharedAcquire {
        limit: "other",
        policy: &policy,
        key: ClientKey(100),
        cost: Cost::ONE,
    };
    let mut verdicts = Vec::new();
    assert!(node.acquire(&[other], NOW, &mut verdicts));
    assert_eq!(verdicts[0].remaining, 4);
    assert_eq!(left(&mut node, 100, Cost::refund(2)), 2);
    let overflow = node
        .events()
        .into_iter()
        .find(|event| event.0 == "overflow");
    assert_eq!(overflow, Some(("overflow", 5)));
}

/// Requests from the time without a slot must still count once it has one.
#[test]
fn a_client_with_a_slot_again_keeps_its_overflow_count() {
    let mut node = Node::new(NodeId(1), 8);
    let minute = Rate::new(5, DurationUs::from_secs(60)).unwrap();
    let short = Policy::FixedWindow(FixedWindow::new(minute));
    let policy = an_hour(5);
    let acquire = |node: &mut Node, policy: &Policy, client: u128, now: TimestampUs| {
        let acquire = SharedAcquire {
            limit: "api",
            policy,
            key: ClientKey(client),
            cost: Cost::ONE,
        };
        let mut verdicts = Vec::new();
        assert!(node.acquire(&[acquire], now, &mut verdicts));
        verdicts[0].is_allowed()
    };
    for client in 0..8 {
        assert!(acquire(&mut node, &short, client, NOW));
    }
    let admitted = (0..9).filter(|_| acquire(&mut node, &policy, 100, NOW));
    assert_eq!(admitted.count(), 5);
    // The minute windows of all others have ended, the hour window has not.
    let later = NOW + DurationUs::from_secs(600);
    assert!(!node.tick(later, Duration::ZERO));
    assert_eq!(node.board.len(), 1 + 1, "its overflow entry, and a beat");
    assert!(!acquire(&mut node, &policy, 100, later));
    assert!(
        acquire(&mut node, &policy, 101, later),
        "of another overflow entry"
    );
    let next_hour = NOW + DurationUs::from_secs(3_600);
    assert!(acquire(&mut node, &policy, 100, next_hour));
}

/// A sender of made-up clients that another limit rejects must not fill the tables of all nodes.
#[test]
fn a_request_rejected_by_another_limit_creates_no_slot() {
    let mut node = Node::new(NodeId(1), 1_000);
    let [wide, narrow] = [an_hour(5), an_hour(1)];
    acquire(&mut node, &narrow, 0, Cost::ONE);
    assert_eq!(node.reports_to_send(100, Duration::ZERO).len(), 1);
    let before = node.board.len();
    let acquire = |policy, client| SharedAcquire {
        limit: "api",
        policy,
        key: ClientKey(client),
        cost: Cost::ONE,
    };
    for client in 1..=100 {
        let mut verdicts = Vec::new();
        let acquires = [acquire(&wide, client), acquire(&narrow, 0)];
        assert!(node.acquire(&acquires, NOW, &mut verdicts));
        assert!(!verdicts[1].is_allowed());
        assert_eq!(
            verdicts[0].remaining, 5,
            "nothing was acquired from the first one"
        );
    }
    assert_eq!(node.board.len(), before);
    assert_eq!(node.reports_to_send(100, Duration::ZERO), []);
}

#[test]
fn a_node_whose_reports_do_not_come_back_is_cut_off() {
    let mut node = Node::new(NodeId(1), 100);
    let is_away = |node: &Node, at| node.is_away("api", ClientKey(1), at);
    let mut sent = Vec::new();
    for secs in 0..15 {
        let at = Duration::from_secs(secs);
        assert!(!is_away(&node, at));
        node.tick(NOW, at);
        sent = node.reports_to_send(100, at);
        assert_eq!(sent.len(), 1, "one beat a second");
    }
    let at = Duration::from_secs(15);
    assert!(is_away(&node, at));
    let mut foreign = sent[0].clone();
    foreign.stats[0].0 = NodeId(2);
    foreign.id.name = names::beat(NodeId(2), Partitions::ONE, 0);
    node.receive_total(&message::encode(&foreign), NOW);
    assert!(is_away(&node, at), "that was the beat of another node");
    node.receive_total(&message::encode(&sent[0]), NOW);
    assert!(!is_away(&node, at));
}
