//! Nodes that crash, pause, and are replaced, under load.
//!
//! The runs do not check how soon admissions continue. Visitors who waited at a lost node count for
//! a minute or two more, and delay those behind them if they have gone to other nodes.

mod upstream_syncs;

use anteroom_testkit::load::{Habits, NodeAt};

use super::{Run, limits, meanwhile};

/// Longer than a node's lease of ten seconds.
const LONGER_THAN_A_LEASE_SECS: u64 = 11;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_killed_and_comes_back() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 30).await;
    run.cluster.node_mut(NodeAt(0, 1)).kill().await;
    // The node's leases are free again when the last seat that it could have given has expired.
    meanwhile(20).await;
    run.cluster.restart(NodeAt(0, 1)).await;
    meanwhile(15).await;
    let counters = run.check(load).await;
    assert_eq!(counters.ran_out, 0, "{counters}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_nodes_are_killed_and_come_back_at_once() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 40).await;
    let victims = [NodeAt(0, 0), NodeAt(0, 2), NodeAt(1, 1)];
    for victim in victims {
        run.cluster.node_mut(victim).kill().await;
    }
    for victim in victims {
        run.cluster.restart(victim).await;
    }
    meanwhile(25).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_of_a_data_center_are_killed() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 50).await;
    for number in 0..3 {
        run.cluster.node_mut(NodeAt(0, number)).kill().await;
    }
    // Its visitors go to the other data center.
    meanwhile(15).await;
    for number in 0..3 {
        run.cluster.restart(NodeAt(0, number)).await;
    }
    meanwhile(10).await;
    run.check_limits(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_killed_again_and_again_while_the_rate_holds_visitors_back() {
    let mut run = Run::start(limits(400, 60, 12)).await;
    let load = run.load(&Habits::default(), 45).await;
    let nodes = run.cluster.all();
    let mut kills = 0;
    // Into the next minute, because most admissions are at its beginning.
    while kills < nodes.len() || run.cluster.origin().minutes().len() < 2 {
        let node = nodes[kills % nodes.len()];
        run.cluster.node_mut(node).kill().await;
        run.cluster.restart(node).await;
        meanwhile(1).await;
        kills += 1;
    }
    meanwhile(3).await;
    let counters = run.check(load).await;
    assert_eq!(counters.ran_out, 0, "{counters}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_paused_for_longer_than_its_lease_and_woken() {
    // Seats outlast the pause, so that requests under way are not late.
    let run = Run::start(limits(40, 600, 15)).await;
    let load = run.load(&Habits::default(), 60).await;
    let sleeper = NodeAt(0, 0);
    run.cluster.node(sleeper).pause();
    meanwhile(LONGER_THAN_A_LEASE_SECS).await;
    run.cluster.node(sleeper).resume();
    meanwhile(15).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_are_restarted_one_after_the_other() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 70).await;
    for node in run.cluster.all() {
        run.cluster.node_mut(node).terminate().await;
        run.cluster.restart(node).await;
        meanwhile(1).await;
    }
    meanwhile(20).await;
    let counters = run.check(load).await;
    assert_eq!(counters.ran_out, 0, "{counters}");
}
