//! A node without a log: what it decides, and what becomes of what it tells.

mod outage;
mod world;

use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::SharedAcquire;

use super::*;

const NOW: TimestampUs = TimestampUs(1_767_225_600_000_000);
const HOUR: DurationUs = DurationUs::from_secs(3_600);

fn an_hour(calls: u32) -> Policy {
    Policy::FixedWindow(FixedWindow::new(Rate::new(calls, HOUR).unwrap()))
}

fn charge_with(node: &mut Node, policy: &Policy, client: u128, cost: Cost) -> Verdict {
    let charge = SharedAcquire {
        limit: "api",
        policy,
        key: CallKey(client),
        cost,
    };
    let mut verdicts = Vec::new();
    assert!(node.charge(&[charge], NOW, &mut verdicts));
    verdicts[0]
}

fn slot(client: u128) -> SlotId {
    SlotId {
        name: names::client("api", HOUR, CallKey(client)),
        index: NOW.0 / HOUR.0,
    }
}

#[test]
fn a_total_that_is_heard_counts_at_once() {
    let mut nodes = [1, 2].map(|id| Node::new(NodeId(id), 100));
    let policy = an_hour(5);
    assert!(charge_with(&mut nodes[0], &policy, 1, Cost::take(3)).is_admitted());
    let [first, second] = &mut nodes;
    for told in first.calls_to_tell(100, Duration::ZERO) {
        second.hear_call(&message::encode(&told), NOW);
    }
    let left = charge_with(second, &policy, 1, Cost::take(2)).remaining;
    assert_eq!(left, 0);
    for total in second.totals_to_publish(100) {
        first.hear_total(&message::encode(&total), NOW);
    }
    assert!(!charge_with(first, &policy, 1, Cost::ONE).is_admitted());
    assert_eq!(charge_with(first, &policy, 1, Cost::refund(9)).remaining, 5);
}

/// A flood of made-up clients must not let those through who find no place.
#[test]
fn a_client_without_a_place_is_counted_with_others() {
    let mut node = Node::new(NodeId(1), 8);
    let policy = an_hour(5);
    for client in 0..8 {
        charge_with(&mut node, &policy, client, Cost::ONE);
    }
    // 100 and 164 share a name.
    let left = |node: &mut Node, client, cost| charge_with(node, &policy, client, cost).remaining;
    assert_eq!(left(&mut node, 100, Cost::take(3)), 2);
    assert_eq!(left(&mut node, 164, Cost::take(2)), 0);
    assert!(!charge_with(&mut node, &policy, 100, Cost::ONE).is_admitted());
    assert_eq!(left(&mut node, 101, Cost::ONE), 4);
    assert_eq!(left(&mut node, 7, Cost::ONE), 3);
    let other = SharedAcquire {
        limit: "other",
        policy: &policy,
        key: CallKey(100),
        cost: Cost::ONE,
    };
    let mut verdicts = Vec::new();
    assert!(node.charge(&[other], NOW, &mut verdicts));
    assert_eq!(verdicts[0].remaining, 4);
    assert_eq!(left(&mut node, 100, Cost::refund(2)), 2);
    let crowded = node
        .events()
        .into_iter()
        .find(|event| event.0 == "overflow");
    assert_eq!(crowded, Some(("overflow", 5)));
}

/// What it called while there was no place for it must not be forgotten as soon as there is one.
#[test]
fn whoever_finds_place_again_has_called_what_was_counted_with_others() {
    let mut node = Node::new(NodeId(1), 8);
    let minute = Rate::new(5, DurationUs::from_secs(60)).unwrap();
    let short = Policy::FixedWindow(FixedWindow::new(minute));
    let policy = an_hour(5);
    let charge = |node: &mut Node, policy: &Policy, client: u128, now: TimestampUs| {
        let charge = SharedAcquire {
            limit: "api",
            policy,
            key: CallKey(client),
            cost: Cost::ONE,
        };
        let mut verdicts = Vec::new();
        assert!(node.charge(&[charge], now, &mut verdicts));
        verdicts[0].is_admitted()
    };
    for client in 0..8 {
        assert!(charge(&mut node, &short, client, NOW));
    }
    let admitted = (0..9).filter(|_| charge(&mut node, &policy, 100, NOW));
    assert_eq!(admitted.count(), 5);
    // The minutes of all others are over, and those of the hour are not.
    let later = NOW + DurationUs::from_secs(600);
    assert!(!node.tick(later, Duration::ZERO));
    assert_eq!(node.board.len(), 1 + 1, "its crowd, and a beat");
    assert!(!charge(&mut node, &policy, 100, later));
    assert!(charge(&mut node, &policy, 101, later), "of another crowd");
    let next_hour = NOW + DurationUs::from_secs(3_600);
    assert!(charge(&mut node, &policy, 100, next_hour));
}

/// Whoever makes up clients and is rejected by another limit must not fill the board of each node.
#[test]
fn a_call_rejected_by_another_limit_takes_no_place() {
    let mut node = Node::new(NodeId(1), 1_000);
    let [wide, narrow] = [an_hour(5), an_hour(1)];
    charge_with(&mut node, &narrow, 0, Cost::ONE);
    assert_eq!(node.calls_to_tell(100, Duration::ZERO).len(), 1);
    let before = node.board.len();
    let charge = |policy, client| SharedAcquire {
        limit: "api",
        policy,
        key: CallKey(client),
        cost: Cost::ONE,
    };
    for client in 1..=100 {
        let mut verdicts = Vec::new();
        let charges = [charge(&wide, client), charge(&narrow, 0)];
        assert!(node.charge(&charges, NOW, &mut verdicts));
        assert!(!verdicts[1].is_admitted());
        assert_eq!(verdicts[0].remaining, 5, "the first one was not charged");
    }
    assert_eq!(node.board.len(), before);
    assert_eq!(node.calls_to_tell(100, Duration::ZERO), []);
}

#[test]
fn whoever_does_not_hear_itself_is_away_until_it_does() {
    let mut node = Node::new(NodeId(1), 100);
    let is_away = |node: &Node, at| node.is_away("api", CallKey(1), at);
    let mut told = Vec::new();
    for secs in 0..15 {
        let at = Duration::from_secs(secs);
        assert!(!is_away(&node, at));
        node.tick(NOW, at);
        told = node.calls_to_tell(100, at);
        assert_eq!(told.len(), 1, "one beat a second");
    }
    let at = Duration::from_secs(15);
    assert!(is_away(&node, at));
    let mut foreign = told[0].clone();
    foreign.stats[0].0 = NodeId(2);
    foreign.id.name = names::beat(NodeId(2), Partitions::ONE, 0);
    node.hear_total(&message::encode(&foreign), NOW);
    assert!(is_away(&node, at), "that was another one");
    node.hear_total(&message::encode(&told[0]), NOW);
    assert!(!is_away(&node, at));
}
