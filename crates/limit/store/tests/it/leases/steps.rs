//! Grants in one step at the store: they save round trips, and unusual cases fall back to two round
//! trips.

use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit_store::leases::{LeaseStats, LeasedCounts, Settings};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::leases::driver::{admitted, after_millis, after_secs, check_uncertain, log, set_up};
use crate::leases::faults::policies;
use crate::leases::link::{Network, StoreLink};
use crate::leases::node::{acquire, node};
use crate::leases::store::Memory;

/// Returns the statistics of one request, and whether it was admitted.
async fn measure(
    node: &LeasedCounts,
    policy: &Policy,
    key: u128,
    cost: Cost,
) -> (LeaseStats, bool) {
    let before = node.stats();
    let outcome = acquire(node, policy, key, cost).await;
    let after = node.stats();
    let stats = LeaseStats {
        round_trips: after.round_trips - before.round_trips,
        steps: after.steps - before.steps,
        conflicts: after.conflicts - before.conflicts,
        disagreements: after.disagreements - before.disagreements,
        ..LeaseStats::default()
    };
    (stats, outcome.is_ok_and(|verdict| verdict.is_allowed()))
}

fn trips(round_trips: u64, steps: u64) -> LeaseStats {
    LeaseStats {
        round_trips,
        steps,
        ..LeaseStats::default()
    }
}

/// Waits, then measures. A single request after a pause is no demand, so nothing is requested ahead
/// of it.
async fn later(node: &LeasedCounts, policy: &Policy, key: u128, taken: u32) -> (LeaseStats, bool) {
    after_millis(300).await;
    measure(node, policy, key, Cost::take(taken)).await
}

#[tokio::test(start_paused = true)]
async fn a_request_costs_one_round_trip_or_two_without_steps() {
    for policy in policies(20, 18) {
        let (memory, _, node) = set_up(Settings::default()).await;
        // It has not seen the epoch yet.
        let first = measure(&node, &policy, 1, Cost::ONE).await;
        assert_eq!(first, (trips(2, 0), true));
        let new = later(&node, &policy, 2, 1).await;
        assert_eq!(new, (trips(1, 1), true), "{policy:?}");
        let known = later(&node, &policy, 2, 1).await;
        assert_eq!(known, (trips(1, 1), true), "{policy:?}");
        let too_much = later(&node, &policy, 2, 20).await;
        assert_eq!(too_much, (trips(1, 0), false), "{policy:?}");
        // A known rejection needs no request.
        let again = later(&node, &policy, 2, 20).await;
        assert_eq!(again, (trips(0, 0), false), "{policy:?}");
        memory.disable_steps();
        let in_two = later(&node, &policy, 3, 1).await;
        assert_eq!(in_two, (trips(2, 0), true), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unusual_cases_cost_no_extra_round_trip() {
    let (memory, link, node) = set_up(Settings::default()).await;
    let (policy, higher) = (log(20), log(30));
    acquire(&node, &policy, 1, Cost::ONE).await.unwrap();
    // Another limit: the node converts the record and writes it.
    let changed = later(&node, &higher, 1, 1).await;
    assert_eq!(changed, (trips(2, 0), true));
    let usual = later(&node, &higher, 1, 1).await;
    assert_eq!(usual, (trips(1, 1), true));
    // The store's clock was set back: the rule waits until it has caught up.
    after_secs(5).await;
    acquire(&node, &higher, 1, Cost::ONE).await.unwrap();
    memory.step_back(2_000_000);
    let back = later(&node, &higher, 1, 1).await;
    assert_eq!(back, (trips(2, 0), true));
    // After a flush: one step finds nothing, one write begins an epoch, and one step reads that all
    // is spent.
    memory.flush();
    let emptied = measure(&node, &higher, 1, Cost::ONE).await;
    assert_eq!(emptied, (trips(3, 0), false));
    // On another server no step is taken.
    memory.wipe();
    let other = later(&node, &higher, 9, 1).await;
    assert_eq!((other.0.steps, other.1), (0, false));
    let new_node = crate::leases::node::node(&link);
    check_uncertain(&new_node, &higher, 1).await;
}

/// Six nodes request leases for one client at once, repeatedly.
#[tokio::test(start_paused = true)]
async fn concurrent_nodes_do_not_conflict_at_steps() {
    for takes_steps in [true, false] {
        let memory = Memory::in_virtual_time();
        if !takes_steps {
            memory.disable_steps();
        }
        let delay = Duration::from_millis(35);
        let network = Network {
            delay: (delay, delay),
            ..Network::default()
        };
        let nodes: Vec<LeasedCounts> = (0..6)
            .map(|seed| node(&StoreLink::new(&memory, network, seed)))
            .collect();
        nodes[0].assume_empty().await.unwrap();
        let policy = log(100);
        for node in &nodes {
            acquire(node, &policy, 9, Cost::ONE).await.unwrap();
        }
        let began = Instant::now();
        let requests = nodes.iter().map(async |node| {
            let mut count = 0;
            for _ in 0..10 {
                let outcome = acquire(node, &policy, 1, Cost::ONE).await;
                count += u32::from(outcome.is_ok_and(|verdict| verdict.is_allowed()));
            }
            count
        });
        let admitted: u32 = join_all(requests).await.into_iter().sum();
        let took = began.elapsed();
        let conflicts: u64 = nodes.iter().map(|node| node.stats().conflicts).sum();
        println!("{takes_steps}: {admitted} in {took:?}, {conflicts} conflicts");
        if takes_steps {
            assert_eq!((admitted, conflicts), (60, 0));
            // Ten round trips, or fewer where leases are granted ahead of demand.
            assert!(took <= Duration::from_millis(710), "{took:?}");
        } else {
            assert!(conflicts > 10, "{conflicts}");
            assert!(took > Duration::from_millis(1_000), "{took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn when_store_and_node_disagree_the_smaller_grant_holds() {
    let (memory, _, node) = set_up(Settings::default()).await;
    let policy = log(10);
    acquire(&node, &policy, 9, Cost::ONE).await.unwrap();
    memory.overstate(3);
    let (stats, is_admitted) = measure(&node, &policy, 1, Cost::take(4)).await;
    assert!(is_admitted);
    assert_eq!((stats.steps, stats.disagreements), (1, 1));
    assert_eq!(node.stats().held, 0, "the excess cannot be spent");
    memory.overstate(0);
    after_secs(90).await;
    assert_eq!(admitted(&node, &policy, 1, 20).await, 10);
}
