//! Requests counted at the store.

use super::{Run, meanwhile};
use anteroom_testkit::load::NodeAt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_crash_pause_and_cannot_reach_the_store() {
    let mut run = Run::start("store = \"valkey\"", 1).await;
    run.cluster.node_mut(NodeAt(0, 0)).kill().await;
    run.cluster.node(NodeAt(1, 1)).pause();
    meanwhile(2).await;
    run.cluster.global_link(1).stall();
    run.cluster.restart(NodeAt(0, 0)).await;
    run.cluster.node(NodeAt(1, 1)).resume();
    meanwhile(6).await;
    run.cluster.global_link(1).heal();
    run.cluster.global_link(0).cut();
    meanwhile(4).await;
    run.cluster.global_link(0).heal();
    run.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_of_each_call_is_kept_at_the_store() {
    let run = Run::start("store = \"valkey\"\nalgorithm = \"sliding-log\"", 2).await;
    meanwhile(5).await;
    run.check().await;
}
