//! What is lent in one step at the store: fewer round trips, and what is unusual goes the usual
//! way.

use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit_store::lending::{LeaseStats, LeasedCounts, Settings};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::leases::driver::{admitted, after_millis, after_secs, log, one};
use crate::leases::faults::policies;
use crate::leases::node::{call, node};
use crate::leases::store::Memory;
use crate::leases::way::{Network, Way};

/// What one call of this client costs, and whether it was admitted.
async fn cost(node: &LeasedCounts, policy: &Policy, key: u128, cost: Cost) -> (LeaseStats, bool) {
    let before = node.stats();
    let verdict = call(node, policy, key, cost).await.unwrap();
    let after = node.stats();
    let stats = LeaseStats {
        round_trips: after.round_trips - before.round_trips,
        steps: after.steps - before.steps,
        conflicts: after.conflicts - before.conflicts,
        disagreements: after.disagreements - before.disagreements,
        ..LeaseStats::default()
    };
    (stats, verdict.is_admitted())
}

fn trips(round_trips: u64, steps: u64) -> LeaseStats {
    LeaseStats {
        round_trips,
        steps,
        ..LeaseStats::default()
    }
}

/// The same later: a call that comes alone is no demand, so nothing is asked for ahead of it.
async fn later(node: &LeasedCounts, policy: &Policy, key: u128, taken: u32) -> (LeaseStats, bool) {
    after_millis(300).await;
    cost(node, policy, key, Cost::take(taken)).await
}

#[tokio::test(start_paused = true)]
async fn a_request_costs_one_round_trip_or_two_without_steps() {
    for policy in policies(20, 18) {
        let (memory, _, node) = one(Settings::default()).await;
        // It has not seen the epoch yet.
        let first = cost(&node, &policy, 1, Cost::ONE).await;
        assert_eq!(first, (trips(2, 0), true));
        let new = later(&node, &policy, 2, 1).await;
        assert_eq!(new, (trips(1, 1), true), "{policy:?}");
        let known = later(&node, &policy, 2, 1).await;
        assert_eq!(known, (trips(1, 1), true), "{policy:?}");
        let too_much = later(&node, &policy, 2, 20).await;
        assert_eq!(too_much, (trips(1, 0), false), "{policy:?}");
        // What is known is not asked again.
        let again = later(&node, &policy, 2, 20).await;
        assert_eq!(again, (trips(0, 0), false), "{policy:?}");
        memory.refuse_steps();
        let in_two = later(&node, &policy, 3, 1).await;
        assert_eq!(in_two, (trips(2, 0), true), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_unusual_costs_no_round_trip_more_than_without_steps() {
    let (memory, way, node) = one(Settings::default()).await;
    let (policy, higher) = (log(20), log(30));
    call(&node, &policy, 1, Cost::ONE).await.unwrap();
    // Another limit: the node reads the record by it, and writes it so.
    let changed = later(&node, &higher, 1, 1).await;
    assert_eq!(changed, (trips(2, 0), true));
    let usual = later(&node, &higher, 1, 1).await;
    assert_eq!(usual, (trips(1, 1), true));
    // A clock that was set back stands still, and nodes know how to wait for it.
    after_secs(5).await;
    call(&node, &higher, 1, Cost::ONE).await.unwrap();
    memory.step_back(2_000_000);
    let back = later(&node, &higher, 1, 1).await;
    assert_eq!(back, (trips(2, 0), true));
    // Emptied: one step finds it, one write begins an epoch, and one step reads that all is spent.
    memory.flush();
    let emptied = cost(&node, &higher, 1, Cost::ONE).await;
    assert_eq!(emptied, (trips(3, 0), false));
    // Another server: no step is taken there.
    memory.wipe();
    let other = later(&node, &higher, 9, 1).await;
    assert_eq!((other.0.steps, other.1), (0, false));
    let stranger = crate::leases::node::node(&way);
    assert_eq!(admitted(&stranger, &higher, 1, 10).await, 0);
}

/// Six nodes ask for one client at once, again and again.
#[tokio::test(start_paused = true)]
async fn nodes_that_ask_at_once_do_not_meet() {
    for takes_steps in [true, false] {
        let memory = Memory::in_virtual_time();
        if !takes_steps {
            memory.refuse_steps();
        }
        let delay = Duration::from_millis(35);
        let network = Network {
            delay: (delay, delay),
            ..Network::default()
        };
        let nodes: Vec<LeasedCounts> = (0..6)
            .map(|seed| node(&Way::new(&memory, network, seed)))
            .collect();
        nodes[0].assume_empty().await.unwrap();
        let policy = log(100);
        for node in &nodes {
            call(node, &policy, 9, Cost::ONE).await.unwrap();
        }
        let began = Instant::now();
        let calls = nodes.iter().map(async |node| {
            let mut count = 0;
            for _ in 0..10 {
                let told = call(node, &policy, 1, Cost::ONE).await;
                count += u32::from(told.is_ok_and(|told| told.is_admitted()));
            }
            count
        });
        let admitted: u32 = join_all(calls).await.into_iter().sum();
        let took = began.elapsed();
        let conflicts: u64 = nodes.iter().map(|node| node.stats().conflicts).sum();
        println!("{takes_steps}: {admitted} in {took:?}, {conflicts} conflicts");
        if takes_steps {
            assert_eq!((admitted, conflicts), (60, 0));
            // Ten round trips, or fewer where calls are lent ahead.
            assert!(took <= Duration::from_millis(710), "{took:?}");
        } else {
            assert!(conflicts > 10, "{conflicts}");
            assert!(took > Duration::from_millis(1_000), "{took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_stats_the_smaller_one_holds_and_the_mistake_is_counted() {
    let (memory, _, node) = one(Settings::default()).await;
    let policy = log(10);
    call(&node, &policy, 9, Cost::ONE).await.unwrap();
    memory.lie(3);
    let (stats, is_admitted) = cost(&node, &policy, 1, Cost::take(4)).await;
    assert!(is_admitted);
    assert_eq!((stats.steps, stats.disagreements), (1, 1));
    assert_eq!(node.stats().held, 0, "what was said beyond is not spent");
    memory.lie(0);
    after_secs(90).await;
    assert_eq!(admitted(&node, &policy, 1, 20).await, 10);
}
