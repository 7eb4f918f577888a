//! What the driver promises beside the limits: few requests, bounded memory, and quick answers
//! while the store is away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::lending::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::time::{Instant, advance};

use crate::leases::node::{call, node, node_with};
use crate::leases::store::Memory;
use crate::leases::way::{Network, Way};

/// One that does not take a moment.
const NEAR: Network = Network {
    delay: (Duration::from_millis(2), Duration::from_millis(2)),
    lost: 0,
    late: 0,
    is_cut: false,
    is_down: false,
};

pub(crate) fn log(calls: u32) -> Policy {
    let rate = Rate::new(calls, DurationUs::from_secs(60)).unwrap();
    Policy::SlidingLog(SlidingLog::new(rate).unwrap())
}

/// A store that lends at once, and a node of it.
pub(crate) async fn one(settings: Settings) -> (Memory, Way, LeasedCounts) {
    let memory = Memory::in_virtual_time();
    let way = Way::new(&memory, NEAR, 1);
    let node = node_with(&way, settings, 0);
    node.assume_empty().await.unwrap();
    (memory, way, node)
}

/// How many calls that count one are admitted, up to `most`.
pub(crate) async fn admitted(node: &LeasedCounts, policy: &Policy, key: u128, most: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..most {
        let verdict = call(node, policy, key, Cost::ONE).await.unwrap();
        admitted += u32::from(verdict.is_admitted());
    }
    admitted
}

pub(crate) async fn after_secs(secs: u64) {
    after_millis(secs * 1_000).await;
}

/// In steps so small that what is due in between is about as late as it was asked for.
pub(crate) async fn after_millis(millis: u64) {
    for _ in 0..millis / 10 {
        tokio::task::yield_now().await;
        advance(Duration::from_millis(10)).await;
    }
    tokio::task::yield_now().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_store_is_checked_before_the_first_expected_call() {
    for (is_expected, admitted) in [(true, true), (false, false)] {
        let memory = Memory::in_virtual_time();
        let node = node_with(&Way::new(&memory, NEAR, 1), Settings::default(), 0);
        if is_expected {
            node.expect_calls();
        }
        after_secs(7).await;
        let verdict = call(&node, &log(10), 1, Cost::ONE).await.unwrap();
        assert_eq!(verdict.is_admitted(), admitted, "expected: {is_expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_one_client_wait_for_one_request() {
    let (memory, _, node) = one(Settings::default()).await;
    let (before, policy) = (memory.reads(), log(1_000));
    let calls = (0..50).map(|_| call(&node, &policy, 1, Cost::ONE));
    for verdict in join_all(calls).await {
        assert!(verdict.unwrap().is_admitted());
    }
    let stats = node.stats();
    assert_eq!((stats.asked, stats.spent), (50, 50));
    // The first asked for itself, and then one for all others.
    assert!(stats.requests <= 3, "{stats:?}");
    assert!(memory.reads() - before <= 3);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_is_charged_nothing() {
    let (_, _, node) = one(Settings::default()).await;
    let policy = log(3);
    for key in 0..5 {
        let mut waiting = Box::pin(call(&node, &policy, key, Cost::ONE));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        assert_eq!(admitted(&node, &policy, key, 9).await, 3);
    }
}

/// The answer comes a quarter of a second after the read was sent: the parent's charge is older
/// than the answer.
#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_its_read_and_not_its_answer() {
    let (memory, _, near) = one(Settings::default()).await;
    let delay = Duration::from_millis(70);
    let network = Network {
        delay: (delay, delay),
        ..NEAR
    };
    let node = node(&Way::new(&memory, network, 1));
    let policy = log(10);
    // Nobody is there any more when it comes, so all of it is held.
    let mut waiting = Box::pin(call(&node, &policy, 1, Cost::take(10)));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(waiting);
    // A twentieth of a minute.
    after_millis(2_900).await;
    assert_eq!(node.stats().held, 10);
    after_millis(100).await;
    assert_eq!(node.stats().held, 0);
    assert_eq!(admitted(&node, &policy, 1, 10).await, 0);
    after_secs(60).await;
    assert_eq!(admitted(&near, &policy, 1, 20).await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_keys_takes_bounded_memory_and_lets_nobody_through_twice() {
    let settings = Settings {
        keys_max: 256,
        requests_max: 64,
        ..Settings::default()
    };
    let (_, _, node) = one(settings).await;
    let (policy, wide) = (log(2), log(1_000));
    call(&node, &wide, 1, Cost::take(10)).await.unwrap();
    let mut admitted: BTreeMap<u128, u32> = BTreeMap::new();
    // Each comes three times, seconds apart.
    for _ in 0..3 {
        for key in 1_000..2_000 {
            let told = call(&node, &policy, key, Cost::ONE).await.unwrap();
            *admitted.entry(key).or_default() += u32::from(told.is_admitted());
            // Chance spreads clients over the parts.
            let clients = node.stats().clients;
            assert!(clients <= 256 + 64 * 10, "{clients}");
        }
    }
    let others: Vec<u32> = admitted.into_values().filter(|count| *count != 2).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(node.stats().crowded, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_idle_is_forgotten_here_and_by_the_store() {
    let (memory, _, node) = one(Settings::default()).await;
    for key in 0..100 {
        call(&node, &log(2), key, Cost::ONE).await.unwrap();
    }
    assert_eq!((node.stats().clients, memory.len()), (100, 101));
    after_secs(15).await;
    assert_eq!((node.stats().clients, memory.len()), (0, 101));
    after_secs(60).await;
    assert_eq!(memory.len(), 1, "the epoch stays");
    let stats = node.stats();
    assert_eq!(stats.forfeited(), stats.lent - stats.spent);
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_on_their_way_than_may_be() {
    let settings = Settings {
        requests_max: 4,
        ..Settings::default()
    };
    let (_, way, node) = one(settings).await;
    way.change(|network| network.is_cut = true);
    let policy = log(2);
    let mut calls: Vec<_> = (0..100)
        .map(|key| Box::pin(call(&node, &policy, key, Cost::ONE)))
        .collect();
    let mut told = 0;
    for waiting in &mut calls {
        if let Some(outcome) = waiting.as_mut().now_or_never() {
            let busy = outcome.unwrap_err();
            assert!(matches!(busy, CountsError::Busy { .. }), "{busy}");
            told += 1;
        }
    }
    // One of four is kept for clients that are known.
    assert_eq!(told, 97);
}

/// Checks that nobody knows what would become of a call, and nothing was charged.
fn check_unreachable(outcome: Result<(), CountsError>, why: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, CountsError::Unreachable { .. }), "{error}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains(why), "{source}");
}

#[tokio::test(start_paused = true)]
async fn during_an_outage_callers_are_told_at_once_and_retried_soon() {
    for is_down in [true, false] {
        let (_, way, node) = one(Settings::default()).await;
        let policy = log(100);
        way.change(|network| (network.is_down, network.is_cut) = (is_down, !is_down));
        let began = Instant::now();
        for key in 0..200 {
            let outcome = call(&node, &policy, key, Cost::ONE).await;
            check_unreachable(outcome.map(drop), "");
        }
        // Three who wait, and then one now and then.
        let took = began.elapsed();
        assert!(took <= Duration::from_secs(4), "{took:?}");
        way.change(|network| (network.is_down, network.is_cut) = (false, false));
        after_secs(2).await;
        assert_eq!(admitted(&node, &policy, 500, 10).await, 10);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_caller_learns_that_the_store_is_back() {
    let memory = Memory::in_virtual_time();
    let way = Way::new(&memory, NEAR, 1);
    way.change(|network| network.is_down = true);
    // It has seen no epoch, so nothing but its failures makes it look.
    let node = node(&way);
    let policy = log(10);
    for key in 0..10 {
        let _ = call(&node, &policy, key, Cost::ONE).await;
    }
    let is_away = || node.is_away("api", CallKey(1));
    assert!(is_away());
    way.change(|network| network.is_down = false);
    after_secs(3).await;
    assert!(!is_away());
}

#[tokio::test(start_paused = true)]
async fn whoever_went_away_while_it_waited_is_forgotten() {
    let (_, way, node) = one(Settings::default()).await;
    let policy = log(10);
    way.change(|network| network.is_cut = true);
    let mut both: Vec<_> = (0..2)
        .map(|_| Box::pin(call(&node, &policy, 1, Cost::ONE)))
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
async fn what_is_held_is_spent_while_the_store_is_away() {
    let (_, way, node) = one(Settings::default()).await;
    let policy = log(1_000);
    for _ in 0..200 {
        call(&node, &policy, 1, Cost::ONE).await.unwrap();
    }
    // Nothing is on its way any more.
    after_millis(100).await;
    let held = u32::try_from(node.stats().held).unwrap();
    assert!(held > 0);
    way.change(|network| network.is_down = true);
    assert_eq!(admitted(&node, &policy, 1, held).await, held);
    check_unreachable(call(&node, &policy, 1, Cost::ONE).await.map(drop), "");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_record_counts_as_all_spent_and_never_new() {
    for broken in [
        &b""[..],
        b"\x02",
        // As it was written before stores lent by themselves.
        b"\x01\x03\x84\x86\x88\x08\xf3\x86\x3d\x05\xc0\x8d\xb7\x01\
          \x0a\x80\x8e\xce\x1c\x01\x02\x00\x03",
        b"\x023 1 3000000 10 60000000 e;1 5;d 1 ",
    ] {
        let (memory, way, first) = one(Settings::default()).await;
        let policy = log(10);
        call(&first, &policy, 1, Cost::ONE).await.unwrap();
        memory.spoil_clients(broken);
        // Another one, which holds nothing.
        let node = node(&way);
        let told = call(&node, &policy, 1, Cost::ONE).await.unwrap();
        assert!(!told.is_admitted(), "{broken:?}");
        assert_eq!(node.stats().unreadable, 1);
        after_secs(6).await;
        call(&node, &policy, 1, Cost::ONE).await.unwrap();
        assert_eq!(node.stats().unreadable, 1, "it was written anew");
        after_secs(60).await;
        assert_eq!(admitted(&node, &policy, 1, 20).await, 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_later_version_is_left_alone_and_lends_nothing() {
    let (memory, way, first) = one(Settings::default()).await;
    let policy = log(10);
    call(&first, &policy, 1, Cost::ONE).await.unwrap();
    let usual = memory.client("api", 1);
    for later in [&b"\x03"[..], b"\x63later"] {
        memory.spoil_clients(later);
        let node = node(&way);
        // Whether it lends in one step or not.
        for _ in 0..2 {
            let refused = call(&node, &policy, 1, Cost::ONE).await.unwrap_err();
            let CountsError::Refused { refusal, .. } = refused else {
                panic!("{refused:?}");
            };
            assert!(refusal.contains("a later version"), "{refusal}");
            after_secs(2).await;
        }
        assert_eq!(memory.client("api", 1), later);
        assert_eq!(node.stats().unreadable, 0);
        // It is no fault of the store, and others are lent to.
        assert_eq!(admitted(&node, &policy, later[0].into(), 1).await, 1);
    }
    memory.spoil_clients(&usual);
    assert_eq!(admitted(&node(&way), &policy, 1, 20).await, 9);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_epoch_is_a_loss_and_a_later_version_stays() {
    let (memory, way, _) = one(Settings::default()).await;
    let policy = log(10);
    memory.spoil_epoch(b"\x01");
    // One that has seen nothing before.
    let stranger = node(&way);
    assert_eq!(admitted(&stranger, &policy, 1, 20).await, 0);
    after_secs(70).await;
    assert_eq!(admitted(&stranger, &policy, 1, 20).await, 10);
    memory.spoil_epoch(b"\x02");
    let stranger = node(&way);
    let refused = call(&stranger, &policy, 2, Cost::ONE).await.unwrap_err();
    assert!(matches!(refused, CountsError::Refused { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_noticed_though_nobody_calls() {
    let (memory, way, node) = one(Settings::default()).await;
    let policy = log(10);
    assert_eq!(admitted(&node, &policy, 1, 10).await, 10);
    for lose in [Memory::wipe, Memory::flush] {
        let before = node.stats().epochs_begun;
        lose(&memory);
        after_secs(3).await;
        assert_eq!(node.stats().epochs_begun, before + 1);
        // Whoever comes new finds that all is spent.
        let stranger = crate::leases::node::node(&way);
        assert_eq!(admitted(&stranger, &policy, 1, 10).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_found_empty_lends_after_five_seconds() {
    let memory = Memory::in_virtual_time();
    let node = node(&Way::new(&memory, NEAR, 1));
    let policy = log(10);
    assert_eq!(admitted(&node, &policy, 1, 10).await, 0);
    after_secs(6).await;
    assert_eq!(admitted(&node, &policy, 1, 20).await, 10);
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_asks_nothing_any_more() {
    let (memory, _, node) = one(Settings::default()).await;
    after_secs(3).await;
    let before = memory.reads();
    drop(node);
    after_secs(10).await;
    assert!(memory.reads() - before <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_cannot_be_leased_is_rejected_even_unasked() {
    let (_, _, node) = one(Settings::default()).await;
    let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
    let leaky = anteroom_limit::leaky_bucket::LeakyBucket::new(rate, 5);
    let policy = Policy::LeakyBucket(leaky);
    let charge = SharedAcquire {
        limit: "api",
        policy: &policy,
        key: CallKey(1),
        cost: Cost::ONE,
    };
    let counts: Arc<dyn SharedCounts> = Arc::new(node);
    let refused = counts.charge(&[charge]).await.unwrap_err();
    assert!(!refused.is_transient(), "{refused}");
}
