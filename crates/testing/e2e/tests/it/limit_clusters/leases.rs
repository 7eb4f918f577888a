//! Leased requests while nodes, links and the store fail.

use anteroom_e2e::cluster::Setup;
use anteroom_testkit::load::NodeAt;

use super::{LIMIT, Run, WINDOW, meanwhile};

const LEASES: &str = "store = \"leases\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_crash_and_pause_while_they_have_leases() {
    let mut run = Run::start(LEASES, 11).await;
    run.cluster.node_mut(NodeAt(0, 0)).kill().await;
    run.cluster.node(NodeAt(1, 1)).pause();
    meanwhile(3).await;
    run.cluster.restart(NodeAt(0, 0)).await;
    run.cluster.node(NodeAt(1, 1)).resume();
    run.cluster.node_mut(NodeAt(1, 0)).kill().await;
    meanwhile(3).await;
    run.cluster.restart(NodeAt(1, 0)).await;
    run.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_cannot_be_reached_for_longer_than_a_window() {
    let run = Run::start(LEASES, 12).await;
    run.cluster.global_link(0).stall();
    meanwhile(4).await;
    run.cluster.global_link(1).cut();
    meanwhile(9).await;
    run.cluster.global_link(0).heal();
    run.cluster.global_link(1).heal();
    run.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_is_killed_and_comes_back_empty() {
    let mut run = Run::start(LEASES, 13).await;
    run.cluster.global_mut().restart().await;
    meanwhile(4).await;
    run.cluster.node_mut(NodeAt(0, 2)).kill().await;
    run.cluster.global_mut().restart().await;
    run.cluster.restart(NodeAt(0, 2)).await;
    run.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_is_emptied_while_it_serves() {
    let run = Run::start(&format!("{LEASES}\nalgorithm = \"sliding-log\""), 14).await;
    run.cluster.forget_global().await;
    meanwhile(5).await;
    run.cluster.forget_global().await;
    run.check().await;
}

/// Changes the setup to one data center, whose nodes are next to the store.
fn near(setup: &mut Setup) {
    setup.data_centers.truncate(1);
    setup.global = None;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn near_the_store_the_limit_is_reached_and_kept() {
    for (algorithm, seed) in [("sliding-log", 15), ("sub-windows-strict", 16)] {
        let lines = format!("{LEASES}\nalgorithm = \"{algorithm}\"");
        let mut run = Run::start_in(near, &lines, seed).await;
        run.cluster.node_mut(NodeAt(0, 0)).kill().await;
        run.cluster.restart(NodeAt(0, 0)).await;
        let requests = run.check().await;
        for most in requests.most(WINDOW) {
            // A limit that is a tenth lower would have failed the check.
            assert!(most > LIMIT * 9 / 10, "{algorithm}: {most} of {LIMIT}");
        }
    }
}
