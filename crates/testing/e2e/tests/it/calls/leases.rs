//! Calls are lent to nodes, and nodes, links and the store fail.

use anteroom_e2e::cluster::{NodeAt, Setup};

use super::{LIMIT, Run, WINDOW, meanwhile};

const LENT: &str = "store = \"leases\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_die_and_sleep_while_they_hold_leases() {
    let mut run = Run::start(LENT, 11).await;
    run.cluster.node_mut(NodeAt(0, 0)).kill().await;
    run.cluster.node(NodeAt(1, 1)).pause();
    meanwhile(3).await;
    run.cluster.restart(NodeAt(0, 0)).await;
    run.cluster.node(NodeAt(1, 1)).resume();
    run.cluster.node_mut(NodeAt(1, 0)).kill().await;
    meanwhile(3).await;
    run.cluster.restart(NodeAt(1, 0)).await;
    run.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_cannot_be_reached_for_longer_than_a_window() {
    let run = Run::start(LENT, 12).await;
    run.cluster.global_link(0).stall();
    meanwhile(4).await;
    run.cluster.global_link(1).cut();
    meanwhile(9).await;
    run.cluster.global_link(0).heal();
    run.cluster.global_link(1).heal();
    run.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_is_killed_and_comes_back_empty() {
    let mut run = Run::start(LENT, 13).await;
    run.cluster.global_mut().restart().await;
    meanwhile(4).await;
    run.cluster.node_mut(NodeAt(0, 2)).kill().await;
    run.cluster.global_mut().restart().await;
    run.cluster.restart(NodeAt(0, 2)).await;
    run.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_is_emptied_while_it_serves() {
    let run = Run::start(&format!("{LENT}\nalgorithm = \"sliding-log\""), 14).await;
    run.cluster.forget_global().await;
    meanwhile(5).await;
    run.cluster.forget_global().await;
    run.judge().await;
}

/// One data center, whose nodes are next to the store.
fn near(setup: &mut Setup) {
    setup.data_centers.truncate(1);
    setup.global = None;
}

/// So near to the limit that a node which spends a little too much, or a store that lends it,
/// breaks it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn near_the_store_the_limit_is_reached_and_kept() {
    for (algorithm, seed) in [("sliding-log", 15), ("sub-windows-strict", 16)] {
        let lines = format!("{LENT}\nalgorithm = \"{algorithm}\"");
        let mut run = Run::start_in(near, &lines, seed).await;
        run.cluster.node_mut(NodeAt(0, 0)).kill().await;
        run.cluster.restart(NodeAt(0, 0)).await;
        let calls = run.judge().await;
        for most in calls.most(WINDOW) {
            // A judge of a limit that is a tenth lower would have said so.
            assert!(most > LIMIT * 9 / 10, "{algorithm}: {most} of {LIMIT}");
        }
    }
}
