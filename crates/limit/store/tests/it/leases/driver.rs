//! Tests of counts by leases beyond the limits: few requests, bounded memory, and fast failures
//! while the store is unavailable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::leases::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::time::{Instant, advance};

use crate::leases::link::{Network, StoreLink};
use crate::leases::node::{acquire, node, node_with};
use crate::leases::store::Memory;

/// Fast network without faults.
const NEAR: Network = Network {
    delay: (Duration::from_millis(2), Duration::from_millis(2)),
    lost: 0,
    late: 0,
    is_cut: false,
    is_down: false,
};

pub(crate) fn log(limit: u32) -> Policy {
    let rate = Rate::new(limit, DurationUs::from_secs(60)).unwrap();
    Policy::SlidingLog(SlidingLog::new(rate).unwrap())
}

/// Returns a store that grants at once, and a node of it.
pub(crate) async fn set_up(settings: Settings) -> (Memory, StoreLink, LeasedCounts) {
    let memory = Memory::in_virtual_time();
    let link = StoreLink::new(&memory, NEAR, 1);
    let node = node_with(&link, settings, 0);
    node.assume_empty().await.unwrap();
    (memory, link, node)
}

/// Returns how many of `most` requests that cost one are admitted.
pub(crate) async fn admitted(node: &LeasedCounts, policy: &Policy, key: u128, most: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..most {
        let verdict = acquire(node, policy, key, Cost::ONE).await.unwrap();
        admitted += u32::from(verdict.is_allowed());
    }
    admitted
}

/// Checks that nothing is granted because what was granted before is unknown.
pub(crate) async fn check_uncertain(node: &LeasedCounts, policy: &Policy, key: u128) {
    let outcome = acquire(node, policy, key, Cost::ONE).await;
    check_closed(outcome.map(drop), "it is unknown for another");
}

pub(crate) async fn after_secs(secs: u64) {
    after_millis(secs * 1_000).await;
}

/// Advances the time in steps so small that timers fire about when they are due.
pub(crate) async fn after_millis(millis: u64) {
    for _ in 0..millis / 10 {
        tokio::task::yield_now().await;
        advance(Duration::from_millis(10)).await;
    }
    tokio::task::yield_now().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_store_is_checked_before_the_first_expected_request() {
    for (is_expected, admitted) in [(true, true), (false, false)] {
        let memory = Memory::in_virtual_time();
        let node = node_with(&StoreLink::new(&memory, NEAR, 1), Settings::default(), 0);
        if is_expected {
            node.expect_requests();
        }
        after_secs(1).await;
        assert_eq!(node.is_ready(), !is_expected, "five seconds begin");
        after_secs(6).await;
        assert!(node.is_ready());
        let outcome = acquire(&node, &log(10), 1, Cost::ONE).await;
        let is_admitted = outcome.is_ok_and(|verdict| verdict.is_allowed());
        assert_eq!(is_admitted, admitted, "expected: {is_expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_client_wait_for_one_lease_request() {
    let (memory, _, node) = set_up(Settings::default()).await;
    let (before, policy) = (memory.reads(), log(1_000));
    let requests = (0..50).map(|_| acquire(&node, &policy, 1, Cost::ONE));
    for verdict in join_all(requests).await {
        assert!(verdict.unwrap().is_allowed());
    }
    let stats = node.stats();
    assert_eq!((stats.waited, stats.spent), (50, 50));
    // The first request asks for itself alone; the next lease request is for all others.
    assert!(stats.requests <= 3, "{stats:?}");
    assert!(memory.reads() - before <= 3);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_takes_nothing() {
    let (_, _, node) = set_up(Settings::default()).await;
    let policy = log(3);
    for key in 0..5 {
        let mut waiting = Box::pin(acquire(&node, &policy, key, Cost::ONE));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        assert_eq!(admitted(&node, &policy, key, 9).await, 3);
    }
}

/// The reply comes a quarter of a second after the read was sent, so the lease has aged when it
/// arrives.
#[tokio::test(start_paused = true)]
async fn a_lease_starts_at_its_read_and_not_at_its_reply() {
    let (memory, _, near) = set_up(Settings::default()).await;
    let delay = Duration::from_millis(70);
    let network = Network {
        delay: (delay, delay),
        ..NEAR
    };
    let node = node(&StoreLink::new(&memory, network, 1));
    let policy = log(10);
    // The caller has gone when the reply comes, so the balance stays whole.
    let mut waiting = Box::pin(acquire(&node, &policy, 1, Cost::take(10)));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(waiting);
    // A twentieth of the window.
    after_millis(2_900).await;
    assert_eq!(node.stats().held, 10);
    after_millis(100).await;
    assert_eq!(node.stats().held, 0);
    assert_eq!(admitted(&node, &policy, 1, 10).await, 0);
    after_secs(60).await;
    assert_eq!(admitted(&near, &policy, 1, 20).await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_keys_takes_bounded_memory_and_exceeds_no_limit() {
    let settings = Settings {
        keys_max: 256,
        requests_max: 64,
        ..Settings::default()
    };
    let (_, _, node) = set_up(settings).await;
    let (policy, wide) = (log(2), log(1_000));
    acquire(&node, &wide, 1, Cost::take(10)).await.unwrap();
    let mut admitted: BTreeMap<u128, u32> = BTreeMap::new();
    // Each client comes three times, seconds apart.
    for _ in 0..3 {
        for key in 1_000..2_000 {
            let verdict = acquire(&node, &policy, key, Cost::ONE).await.unwrap();
            *admitted.entry(key).or_default() += u32::from(verdict.is_allowed());
            // Clients are spread over the shards by chance.
            let clients = node.stats().clients;
            assert!(clients <= 256 + 64 * 10, "{clients}");
        }
    }
    let others: Vec<u32> = admitted.into_values().filter(|count| *count != 2).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(node.stats().overflows, 0);
}

#[tokio::test(start_paused = true)]
async fn idle_clients_are_forgotten_by_node_and_store() {
    let (memory, _, node) = set_up(Settings::default()).await;
    for key in 0..100 {
        acquire(&node, &log(2), key, Cost::ONE).await.unwrap();
    }
    assert_eq!((node.stats().clients, memory.len()), (100, 101));
    after_secs(15).await;
    assert_eq!((node.stats().clients, memory.len()), (0, 101));
    after_secs(60).await;
    assert_eq!(memory.len(), 1, "the epoch stays");
    let stats = node.stats();
    assert_eq!(stats.forfeited(), stats.granted - stats.spent);
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_bounded() {
    let settings = Settings {
        requests_max: 4,
        ..Settings::default()
    };
    let (_, link, node) = set_up(settings).await;
    link.change(|network| network.is_cut = true);
    let policy = log(2);
    let mut requests: Vec<_> = (0..100)
        .map(|key| Box::pin(acquire(&node, &policy, key, Cost::ONE)))
        .collect();
    let mut rejected = 0;
    for waiting in &mut requests {
        if let Some(outcome) = waiting.as_mut().now_or_never() {
            let busy = outcome.unwrap_err();
            assert!(matches!(busy, CountsError::Busy { .. }), "{busy}");
            rejected += 1;
        }
    }
    // A quarter is reserved for known clients.
    assert_eq!(rejected, 97);
}

/// Checks that a request failed because the store was unavailable.
fn check_unreachable(outcome: Result<(), CountsError>, why: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, CountsError::Unreachable { .. }), "{error}");
    check_source(&error, why);
}

/// Checks that a request failed because the store grants nothing.
fn check_closed(outcome: Result<(), CountsError>, why: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, CountsError::Closed { .. }), "{error}");
    check_source(&error, why);
}

fn check_source(error: &CountsError, why: &str) {
    let source = std::error::Error::source(error).unwrap().to_string();
    assert!(source.contains(why), "{source}");
}

#[tokio::test(start_paused = true)]
async fn during_an_outage_callers_fail_fast_and_probes_come_soon() {
    for is_down in [true, false] {
        let (_, link, node) = set_up(Settings::default()).await;
        let policy = log(100);
        link.change(|network| (network.is_down, network.is_cut) = (is_down, !is_down));
        let began = Instant::now();
        for key in 0..200 {
            let outcome = acquire(&node, &policy, key, Cost::ONE).await;
            check_unreachable(outcome.map(drop), "");
        }
        // Three requests wait, and then a probe now and then.
        let took = began.elapsed();
        assert!(took <= Duration::from_secs(4), "{took:?}");
        link.change(|network| (network.is_down, network.is_cut) = (false, false));
        after_secs(2).await;
        assert_eq!(admitted(&node, &policy, 500, 10).await, 10);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_notices_that_the_store_is_back() {
    let memory = Memory::in_virtual_time();
    let link = StoreLink::new(&memory, NEAR, 1);
    link.change(|network| network.is_down = true);
    // The node has seen no epoch, so only its failures make it probe.
    let node = node(&link);
    let policy = log(10);
    for key in 0..10 {
        let _ = acquire(&node, &policy, key, Cost::ONE).await;
    }
    let is_away = || node.is_unavailable("api", ClientKey(1));
    assert!(is_away());
    link.change(|network| network.is_down = false);
    after_secs(3).await;
    assert!(!is_away());
}

#[tokio::test(start_paused = true)]
async fn clients_that_went_away_while_waiting_are_forgotten() {
    let (_, link, node) = set_up(Settings::default()).await;
    let policy = log(10);
    link.change(|network| network.is_cut = true);
    let mut both: Vec<_> = (0..2)
        .map(|_| Box::pin(acquire(&node, &policy, 1, Cost::ONE)))
        .collect();
    for waiting in &mut both {
        assert!(waiting.as_mut().now_or_never().is_none());
    }
    assert_eq!(node.stats().clients, 1);
    drop(both);
    after_secs(30).await;
    assert_eq!(node.stats().clients, 0);
}

#[tokio::test(start_paused = true)]
async fn a_balance_is_spent_while_the_store_is_unavailable() {
    let (_, link, node) = set_up(Settings::default()).await;
    let policy = log(1_000);
    for _ in 0..200 {
        acquire(&node, &policy, 1, Cost::ONE).await.unwrap();
    }
    // By now no request is in flight.
    after_millis(100).await;
    let balance = u32::try_from(node.stats().held).unwrap();
    assert!(balance > 0);
    link.change(|network| network.is_down = true);
    assert_eq!(admitted(&node, &policy, 1, balance).await, balance);
    check_unreachable(acquire(&node, &policy, 1, Cost::ONE).await.map(drop), "");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_record_counts_as_used_up() {
    for broken in [
        &b""[..],
        b"\x02",
        // Format of an earlier version.
        b"\x01\x03\x84\x86\x88\x08\xf3\x86\x3d\x05\xc0\x8d\xb7\x01\
          \x0a\x80\x8e\xce\x1c\x01\x02\x00\x03",
        b"\x023 1 3000000 10 60000000 e;1 5;d 1 ",
    ] {
        let (memory, link, first) = set_up(Settings::default()).await;
        let policy = log(10);
        acquire(&first, &policy, 1, Cost::ONE).await.unwrap();
        memory.overwrite_clients(broken);
        // Another node, without a balance.
        let node = node(&link);
        let verdict = acquire(&node, &policy, 1, Cost::ONE).await.unwrap();
        assert!(!verdict.is_allowed(), "{broken:?}");
        assert_eq!(node.stats().unreadable, 1);
        after_secs(6).await;
        acquire(&node, &policy, 1, Cost::ONE).await.unwrap();
        assert_eq!(node.stats().unreadable, 1, "the record was rewritten");
        after_secs(60).await;
        assert_eq!(admitted(&node, &policy, 1, 20).await, 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_later_version_stays_and_grants_nothing() {
    let (memory, link, first) = set_up(Settings::default()).await;
    let policy = log(10);
    acquire(&first, &policy, 1, Cost::ONE).await.unwrap();
    let usual = memory.client("api", 1);
    for later in [&b"\x03"[..], b"\x63later"] {
        memory.overwrite_clients(later);
        let node = node(&link);
        // Both in one step and in two round trips.
        for _ in 0..2 {
            let error = acquire(&node, &policy, 1, Cost::ONE).await.unwrap_err();
            let CountsError::Rejected { refusal, .. } = error else {
                panic!("{error:?}");
            };
            assert!(refusal.contains("a later version"), "{refusal}");
            after_secs(2).await;
        }
        assert_eq!(memory.client("api", 1), later);
        assert_eq!(node.stats().unreadable, 0);
        // Other clients still get leases.
        assert_eq!(admitted(&node, &policy, later[0].into(), 1).await, 1);
    }
    memory.overwrite_clients(&usual);
    assert_eq!(admitted(&node(&link), &policy, 1, 20).await, 9);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_epoch_is_a_loss_and_a_later_version_stays() {
    let (memory, link, _) = set_up(Settings::default()).await;
    let policy = log(10);
    memory.overwrite_epoch(b"\x02");
    // A node that has seen no epoch before.
    let new_node = node(&link);
    check_uncertain(&new_node, &policy, 1).await;
    after_secs(70).await;
    assert_eq!(admitted(&new_node, &policy, 1, 20).await, 10);
    memory.overwrite_epoch(b"\x03");
    let new_node = node(&link);
    let error = acquire(&new_node, &policy, 2, Cost::ONE).await.unwrap_err();
    assert!(matches!(error, CountsError::Rejected { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_noticed_without_requests() {
    let (memory, link, node) = set_up(Settings::default()).await;
    let policy = log(10);
    assert_eq!(admitted(&node, &policy, 1, 10).await, 10);
    for lose in [Memory::wipe, Memory::flush] {
        let before = node.stats().epochs_begun;
        lose(&memory);
        after_secs(3).await;
        assert_eq!(node.stats().epochs_begun, before + 1);
        // A new node finds everything used up.
        let new_node = crate::leases::node::node(&link);
        check_uncertain(&new_node, &policy, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_store_grants_after_five_seconds() {
    let memory = Memory::in_virtual_time();
    let node = node(&StoreLink::new(&memory, NEAR, 1));
    let policy = log(10);
    check_uncertain(&node, &policy, 1).await;
    after_secs(6).await;
    assert_eq!(admitted(&node, &policy, 1, 20).await, 10);
}

/// Returns a store that promises to lack little, and nodes that it cannot forget any more.
async fn promising(nodes: usize) -> (Memory, Vec<(StoreLink, LeasedCounts)>) {
    let memory = Memory::in_virtual_time();
    memory.promise(DurationUs::from_secs(2));
    let each = (0..nodes as u64).map(|seed| {
        let link = StoreLink::new(&memory, NEAR, seed);
        let node = node(&link);
        node.expect_requests();
        (link, node)
    });
    let nodes: Vec<_> = each.collect();
    after_secs(7).await;
    (memory, nodes)
}

#[tokio::test(start_paused = true)]
async fn a_new_node_is_granted_nothing_while_the_store_could_forget_it() {
    let (memory, nodes) = promising(1).await;
    assert!(nodes[0].1.is_ready());
    let other = node(&StoreLink::new(&memory, NEAR, 9));
    other.expect_requests();
    after_millis(500).await;
    assert!(!other.is_ready());
    check_closed(
        acquire(&other, &log(10), 1, Cost::ONE).await.map(drop),
        "just joined",
    );
    after_millis(1_700).await;
    assert!(other.is_ready());
    assert_eq!(admitted(&other, &log(10), 1, 20).await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_lost_its_newest_grants_goes_on_when_all_nodes_have_reported() {
    let (memory, nodes) = promising(2).await;
    let policy = log(1_000);
    for (_, node) in &nodes {
        assert_eq!(admitted(node, &policy, 1, 10).await, 10);
    }
    after_secs(4).await;
    for (_, node) in &nodes {
        assert_eq!(admitted(node, &policy, 1, 20).await, 20);
    }
    memory.roll_back(1_900_000);
    after_secs(3).await;
    let begun: u64 = nodes
        .iter()
        .map(|(_, node)| node.stats().epochs_begun)
        .sum();
    assert_eq!(begun, 1, "the first one");
    let granted: u64 = nodes.iter().map(|(_, node)| node.stats().granted).sum();
    let restored: u64 = nodes.iter().map(|(_, node)| node.stats().restored).sum();
    assert!(restored >= 40, "{restored}");
    // Exactly what was granted counts.
    let (_, new) = &promising_node(&memory).await;
    let left = admitted(new, &policy, 1, 1_000).await;
    assert_eq!(u64::from(left) + granted, 1_000);
    // Other clients are as they were.
    assert_eq!(admitted(new, &policy, 2, 1_000).await, 1_000);
}

/// Returns one more node of a store that promises something.
async fn promising_node(memory: &Memory) -> (StoreLink, LeasedCounts) {
    let link = StoreLink::new(memory, NEAR, 77);
    let node = node(&link);
    node.expect_requests();
    after_secs(3).await;
    (link, node)
}

#[tokio::test(start_paused = true)]
async fn a_member_that_died_with_the_store_means_loss_unless_it_had_left() {
    for leaves in [true, false] {
        let (memory, mut nodes) = promising(2).await;
        let policy = log(10);
        let (_, died) = nodes.pop().unwrap();
        assert_eq!(admitted(&died, &policy, 1, 10).await, 10);
        if leaves {
            died.finish(false).await;
            // Otherwise the store may forget that it left.
            after_secs(3).await;
        }
        drop(died);
        memory.roll_back(1_500_000);
        after_secs(4).await;
        let (_, node) = &nodes[0];
        if leaves {
            assert_eq!(admitted(node, &policy, 2, 20).await, 10);
            continue;
        }
        check_closed(
            acquire(node, &policy, 2, Cost::ONE).await.map(drop),
            "report",
        );
        after_secs(11).await;
        check_closed(
            acquire(node, &policy, 2, Cost::ONE).await.map(drop),
            "assume-empty",
        );
        after_secs(64).await;
        assert_eq!(admitted(node, &policy, 2, 20).await, 10);
    }
}

/// A process may end because its store is away. Nobody waits for the report of a member that left.
#[tokio::test(start_paused = true)]
async fn a_member_that_leaves_after_a_comeback_reports_before() {
    for has_store in [true, false] {
        let (memory, mut nodes) = promising(2).await;
        let policy = log(10);
        let (link, leaver) = nodes.pop().unwrap();
        assert_eq!(admitted(&leaver, &policy, 1, 8).await, 8);
        memory.roll_back(1_500_000);
        link.change(|network| network.is_down = !has_store);
        leaver.finish(false).await;
        drop(leaver);
        after_secs(4).await;
        let (_, node) = &nodes[0];
        let outcome = acquire(node, &policy, 1, Cost::ONE).await;
        if has_store {
            assert!(outcome.unwrap().is_allowed());
            assert!(admitted(node, &policy, 1, 20).await <= 1);
        } else {
            check_closed(outcome.map(drop), "report");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_keeps_all_goes_on_without_those_that_died() {
    for breaks_its_promise in [false, true] {
        let (memory, mut nodes) = promising(2).await;
        memory.promise(DurationUs::ZERO);
        memory.weaken_epoch();
        let policy = log(10);
        for (_, node) in &nodes {
            assert_eq!(admitted(node, &policy, 1, 4).await, 4);
        }
        nodes.pop();
        memory.roll_back(if breaks_its_promise { 900_000 } else { 0 });
        after_secs(15).await;
        let (_, node) = &nodes[0];
        let outcome = acquire(node, &policy, 2, Cost::ONE).await;
        if breaks_its_promise {
            check_closed(outcome.map(drop), "assume-empty");
        } else {
            assert!(outcome.unwrap().is_allowed());
            // The node that died may have leased more than it spent.
            assert!(admitted(node, &policy, 1, 20).await <= 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_counts_send_no_requests() {
    let (memory, _, node) = set_up(Settings::default()).await;
    after_secs(3).await;
    let before = memory.reads();
    drop(node);
    after_secs(10).await;
    assert!(memory.reads() - before <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_cannot_be_leased_is_rejected_without_a_check() {
    let (_, _, node) = set_up(Settings::default()).await;
    let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
    let leaky = anteroom_limit::leaky_bucket::LeakyBucket::new(rate, 5);
    let policy = Policy::LeakyBucket(leaky);
    let request = SharedAcquire {
        limit: "api",
        policy: &policy,
        key: ClientKey(1),
        cost: Cost::ONE,
    };
    let counts: Arc<dyn SharedCounts> = Arc::new(node);
    let error = counts.acquire(&[request]).await.unwrap_err();
    assert!(!error.is_transient(), "{error}");
}
