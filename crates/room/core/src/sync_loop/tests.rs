//! Tests of the loop against a clock that is moved by hand, with replies at chosen times.

use super::*;
use crate::hash::LotteryKey;
use crate::id::{DataCenterId, NodeId};
use crate::room::{Capacity, Predecessors, RoomIdentity};
use crate::rules::Rules;

const START: Timestamp = Timestamp(1_694_432_700_000);

fn room() -> Room {
    let identity = RoomIdentity {
        node: NodeId(1),
        process: NodeId(1),
        is_alone: false,
        data_center: DataCenterId(1),
        lottery_key: LotteryKey([1; 16]),
    };
    let (rules, capacity) = (Rules::default(), Capacity::default());
    Room::new(identity, Predecessors::default(), rules, capacity, START)
}

struct Node {
    room: Room,
    sync_loop: SyncLoop,
    now: Timestamp,
}

impl Node {
    fn new() -> Self {
        Self {
            room: room(),
            sync_loop: SyncLoop::new(true, START),
            now: START,
        }
    }

    fn poll(&mut self) -> Option<Action> {
        self.sync_loop.poll_action(false, self.now)
    }

    /// Begins the sync that must be due now.
    fn begin(&mut self) -> Sync {
        match self.poll() {
            Some(Action::Sync(sync)) => sync,
            other => panic!("{other:?} instead of a sync"),
        }
    }

    fn handle_reply(&mut self, sync: &Sync, upstream_sync: Option<SyncRequest>) {
        let request = self.room.poll_sync(self.now);
        let exchange = Exchange {
            reply: Reply::Stale,
            upstream_sync,
            other_sync_back_after: None,
            root_lease: None,
        };
        let both = (&request, &exchange);
        let is_present =
            self.sync_loop
                .handle_exchange(sync.round, both, &self.room, |period| period, self.now);
        assert!(is_present);
    }

    fn deadline(&self) -> Option<DurationMs> {
        let at = self.sync_loop.next_deadline(false, self.now)?;
        Some(at.since(self.now))
    }
}

#[test]
fn syncs_follow_the_rooms_period_and_sooner_in_a_hurry() {
    let mut node = Node::new();
    let sync = node.begin();
    assert_eq!(node.poll(), None);
    node.handle_reply(&sync, None);
    let period = node.room.sync_period();
    assert_eq!(node.deadline(), Some(period));
    node.sync_loop.request_sync();
    assert_eq!(node.deadline(), Some(DurationMs::ZERO));
    node.begin();
    assert_eq!(node.deadline(), Some(TIMEOUT));
}

#[test]
fn a_hurry_pauses_after_a_parent_had_too_little() {
    let mut node = Node::new();
    node.sync_loop = SyncLoop::new(false, START);
    let mut ledger = crate::ledger::Ledger::new();
    let mut pause_after = |node: &mut Node, slots: u32| {
        let sync = node.begin();
        let mut request = node.room.poll_sync(node.now);
        request.demand.slots = slots;
        let terms = crate::ledger::LeaseTerms::default();
        let reply = ledger.handle_sync(request.clone(), terms, ledger.as_of());
        node.room.handle_reply(reply.clone(), node.now);
        let exchange = Exchange {
            reply,
            upstream_sync: None,
            other_sync_back_after: None,
            root_lease: None,
        };
        let both = (&request, &exchange);
        let present =
            node.sync_loop
                .handle_exchange(sync.round, both, &node.room, |period| period, node.now);
        assert!(present);
        node.sync_loop.request_sync();
        node.deadline()
    };
    assert_eq!(pause_after(&mut node, 1), Some(DurationMs::ZERO));
    assert_eq!(pause_after(&mut node, 9_999), Some(PAUSE_WHEN_SHORT));
}

#[test]
fn a_sync_that_timed_out_is_repeated_after_a_pause() {
    let mut node = Node::new();
    let lost = node.begin();
    node.now = node.now + TIMEOUT;
    node.sync_loop.request_sync();
    assert_eq!(node.poll(), None);
    assert!(node.sync_loop.round().is_failing);
    assert_eq!(node.deadline(), Some(PAUSE_AFTER_FAILURE));
    node.now = node.now + PAUSE_AFTER_FAILURE;
    let next = node.begin();
    let request = node.room.poll_sync(node.now);
    let exchange = Exchange {
        reply: Reply::Stale,
        upstream_sync: None,
        other_sync_back_after: None,
        root_lease: None,
    };
    let late = (&request, &exchange);
    let (room, now) = (&node.room, node.now);
    let counts = node
        .sync_loop
        .handle_exchange(lost.round, late, room, |period| period, now);
    assert!(!counts, "a reply to a sync that has failed ends none");
    node.handle_reply(&next, None);
    assert!(!node.sync_loop.round().is_failing);
}

#[test]
fn the_roots_reply_is_forwarded_at_once_if_a_visitor_waits() {
    for is_awaited in [false, true] {
        let mut node = Node::new();
        let sync = node.begin();
        let request = node.room.poll_sync(node.now);
        node.handle_reply(&sync, Some(request));
        let Some(Action::SyncUpstream { upstream_sync, .. }) = node.poll() else {
            panic!("no upstream sync");
        };
        node.now = node.now + DurationMs(80);
        node.sync_loop.request_sync();
        let before = node.sync_loop.next_deadline(is_awaited, node.now);
        assert!(
            before > Some(node.now),
            "it waits for the result of the upstream sync"
        );
        let change = node
            .sync_loop
            .handle_root_reply(upstream_sync, Reply::Stale, node.now);
        assert_eq!(change, Change::None);
        let Some(Action::Sync(sync)) = node.sync_loop.poll_action(is_awaited, node.now) else {
            panic!("no sync although a visitor is in a hurry");
        };
        assert_eq!(sync.root_reply, Some(Reply::Stale));
    }
}

#[test]
fn a_hurry_waits_at_most_a_period_for_an_upstream_sync() {
    let mut node = Node::new();
    let sync = node.begin();
    let request = node.room.poll_sync(node.now);
    node.handle_reply(&sync, Some(request));
    let sent_at = node.now;
    assert!(matches!(node.poll(), Some(Action::SyncUpstream { .. })));
    node.now = node.now + DurationMs(10);
    node.sync_loop.request_sync();
    let begins_at = loop {
        if let Some(action) = node.poll() {
            assert!(matches!(action, Action::Sync(_)));
            break node.now;
        }
        node.now = node.now + DurationMs(1);
    };
    assert_eq!(begins_at.since(sent_at), SYNC_PERIOD);
}

#[test]
fn a_stopping_loop_delivers_the_roots_reply_and_ends() {
    let mut node = Node::new();
    let sync = node.begin();
    let request = node.room.poll_sync(node.now);
    node.handle_reply(&sync, Some(request.clone()));
    let Some(Action::SyncUpstream { upstream_sync, .. }) = node.poll() else {
        panic!("no upstream sync");
    };
    node.sync_loop.stop();
    assert_eq!(node.poll(), None, "it carries a request");
    node.sync_loop.handle_root_failure(upstream_sync, node.now);
    let Some(Action::Goodbye(goodbye)) = node.poll() else {
        panic!("no goodbye");
    };
    node.handle_reply(&goodbye, Some(request));
    let Some(Action::SyncUpstream { upstream_sync, .. }) = node.poll() else {
        panic!("the returns of a data center without nodes go upstream");
    };
    node.sync_loop
        .handle_root_reply(upstream_sync, Reply::Stale, node.now);
    let delivered = node.poll();
    assert!(
        matches!(&delivered, Some(Action::Deliver(delivery)) if delivery.reply == Reply::Stale),
        "{delivered:?}"
    );
    assert!(!node.sync_loop.is_finished());
    node.sync_loop.handle_delivered();
    assert!(node.sync_loop.is_finished());
    assert_eq!(node.deadline(), None);
}

#[test]
fn a_loop_that_stops_without_a_store_returns_nothing() {
    let mut node = Node::new();
    node.begin();
    node.now = node.now + TIMEOUT;
    node.sync_loop.stop();
    assert_eq!(node.poll(), None);
    assert!(node.sync_loop.is_finished());
}
