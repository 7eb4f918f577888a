//! Changes of the rules while visitors are active.

use anteroom_e2e::cluster::Cluster;
use anteroom_e2e::eventually;
use anteroom_testkit::load::Habits;

use super::{Run, meanwhile};

/// Replaces a line of every node's configuration, node after node.
async fn change(cluster: &mut Cluster, from: &str, to: &str) {
    for at in cluster.all() {
        cluster
            .node_mut(at)
            .reload(|config| config.replace(from, to));
        meanwhile(1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_become_fewer_and_more_again() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 190).await;
    let (more, fewer) = ("total_active_users = 40", "total_active_users = 20");
    change(&mut run.cluster, more, fewer).await;
    let mut before = run.cluster.origin().inside();
    for _ in 0..12 {
        meanwhile(1).await;
        let inside = run.cluster.origin().inside();
        assert!(
            inside <= before.max(20),
            "{inside} active after {before}, 20 allowed"
        );
        before = inside;
    }
    assert!(before <= 20, "{before} active after a session");
    change(&mut run.cluster, fewer, more).await;
    let is_fuller = async || run.cluster.origin().inside() > 25;
    eventually("more than 25 visitors are active again", is_fuller).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_allocation_takes_over_and_gives_back() {
    let mut run = Run::small().await;
    let load = run.load(&Habits::default(), 195).await;
    let (leases, even) = ("allocation = \"leases\"", "allocation = \"even\"");
    change(&mut run.cluster, leases, even).await;
    meanwhile(5).await;
    change(&mut run.cluster, even, leases).await;
    run.cluster.admits(10).await;
    let (_, counters) = run.check_visitors(load).await;
    assert!(counters.entered > 0, "{counters}");
}
