//! Stores that crash, lose data, and cannot be reached, under load.

mod clocks;
mod comebacks;
mod failovers;

use anteroom_e2e::stores::StoreKind;
use anteroom_testkit::load::{Habits, NodeAt, NodeChoice, VisitorLoad};

use super::{Run, limits, meanwhile};

/// Longer than a node's lease of ten seconds.
const LONGER_THAN_A_LEASE_SECS: u64 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_of_a_data_center_is_killed_and_comes_back_empty() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 80).await;
    run.cluster.local_mut(0).restart().await;
    // Longer than all seats that were given before.
    meanwhile(30).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_of_a_data_center_is_lost_together_with_a_node() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 90).await;
    run.cluster.node_mut(NodeAt(0, 1)).kill().await;
    run.cluster.local_mut(0).kill();
    meanwhile(2).await;
    run.cluster.local_mut(0).restart().await;
    run.cluster.restart(NodeAt(0, 1)).await;
    meanwhile(28).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_global_store_cannot_be_reached_for_longer_than_a_lease() {
    let run = Run::small().await;
    let load = run.load(&Habits::default(), 100).await;
    for data_center in 0..2 {
        run.cluster.global_link(data_center).stall();
    }
    meanwhile(LONGER_THAN_A_LEASE_SECS).await;
    for data_center in 0..2 {
        run.cluster.global_link(data_center).heal();
    }
    run.cluster.admits(20).await;
    let counters = run.check(load).await;
    assert_eq!(counters.ran_out, 0, "{counters}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_centers_are_cut_from_each_other() {
    let run = Run::small().await;
    let mut load = run.load(&Habits::default(), 110).await;
    for data_center in 0..2 {
        run.cluster.global_link(data_center).cut();
    }
    // Some travel, and take their tickets along.
    let travellers = Habits {
        node_choice: NodeChoice::Anywhere,
        ..Habits::default()
    };
    let travellers = VisitorLoad::at_once(&run.cluster.routes(), 60, &travellers, 112);
    load.others.push(travellers);
    meanwhile(20).await;
    for data_center in 0..2 {
        run.cluster.global_link(data_center).heal();
    }
    run.cluster.admits(20).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_cannot_reach_their_own_store_for_longer_than_a_lease() {
    // Seats outlast the outage, because without a lease a node renews no session.
    let run = Run::start(limits(40, 600, 20)).await;
    let load = run.load(&Habits::default(), 130).await;
    run.cluster.local_link(0).stall();
    meanwhile(LONGER_THAN_A_LEASE_SECS).await;
    run.cluster.local_link(0).heal();
    meanwhile(15).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_sleeps_while_the_store_of_its_data_center_is_lost() {
    // Seats outlast the pause, so that requests under way are not late.
    let mut run = Run::start(limits(40, 600, 20)).await;
    let load = run.load(&Habits::default(), 140).await;
    run.cluster.node(NodeAt(0, 0)).pause();
    meanwhile(3).await;
    run.cluster.local_mut(0).restart().await;
    meanwhile(LONGER_THAN_A_LEASE_SECS).await;
    run.cluster.node(NodeAt(0, 0)).resume();
    meanwhile(15).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_global_store_is_killed_and_comes_back_empty() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 150).await;
    run.cluster.global_mut().restart().await;
    meanwhile(15).await;
    // A node that starts now must not begin another deployment.
    run.cluster.node_mut(NodeAt(1, 0)).kill().await;
    run.cluster.restart(NodeAt(1, 0)).await;
    meanwhile(20).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_waits_for_the_deployment_of_a_store_that_comes_back_empty() {
    let mut run = Run::start(limits(40, 6_000, 12).on_one_store(StoreKind::Single)).await;
    let load = run.load(&Habits::default(), 160).await;
    let new = NodeAt(0, 1);
    run.cluster.node_mut(new).kill().await;
    run.cluster.local_mut(0).kill();
    let in_new_folder =
        |config: &str| config.replacen("[server]", "[server]\ndata_dir = \"new\"", 1);
    run.cluster.node(new).edit(in_new_folder);
    run.cluster.node_mut(new).spawn();
    meanwhile(3).await;
    run.cluster.local_mut(0).restart().await;
    run.cluster.node_mut(new).serves().await;
    run.cluster.lends_again().await;
    for at in run.cluster.all() {
        let log = run.cluster.node(at).log();
        assert!(!log.contains("another deployment has begun"), "{log}");
    }
    run.check(load).await;
}
