//! Stores that are killed and come back with their data: with all of it, or without the newest
//! writes. Where that is certain, admissions go on at once, and no other epoch begins.

use std::time::Duration;

use anteroom_e2e::cluster::Setup;
use anteroom_e2e::stores::{Store, StoreKind};
use anteroom_testkit::load::{Habits, NodeAt};
use tokio::time::Instant;

use super::failovers::move_the_room;
use crate::clusters::{FIRST, Load, Run, limits, meanwhile};

/// Longer than the lease of a node, so that no lease outlives the outage.
const AWAY_SECS: u64 = 15;
/// Longest time that a room may stay closed: far less than the reserve, which lasts a lease and a
/// session, and at least until the minute ends.
const OPENS_WITHIN: Duration = Duration::from_secs(8);

/// Returns a setup with forty seats on one store that logs its writes.
fn logged(fsync: &'static str) -> Setup {
    limits(40, 6_000, 12).on_one_store(StoreKind::Logged(fsync))
}

/// Waits until the room admits visitors again, and prints how long that took.
async fn opens_again(run: &Run, what: &str) -> Duration {
    let back_at = Instant::now();
    run.cluster.admits(1).await;
    let took = back_at.elapsed();
    eprintln!(
        "{what}: admissions go on {} ms after the store is back",
        took.as_millis()
    );
    took
}

/// Checks that nothing began anew, and that those who were active stayed so.
async fn goes_on(run: Run, load: Load, before: Option<u64>) {
    run.cluster.admits(20).await;
    assert_eq!(
        run.cluster.epoch(FIRST[0]).await,
        before,
        "no other epoch begins"
    );
    meanwhile(5).await;
    let counters = run.check(load).await;
    assert_eq!(counters.ran_out, 0, "{counters}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_store_that_logs_its_writes_opens_at_once() {
    for fsync in ["everysec", "always"] {
        let mut run = Run::start(logged(fsync)).await;
        let load = run.load(&Habits::default(), 400).await;
        let before = run.cluster.epoch(FIRST[0]).await;
        run.cluster.local_mut(0).restart().await;
        let took = opens_again(&run, fsync).await;
        assert!(took < OPENS_WITHIN, "{fsync}: {took:?}");
        goes_on(run, load, before).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_was_away_for_longer_than_a_lease_opens_at_once() {
    let mut run = Run::start(Setup {
        // Active visitors outlive the outage.
        session_secs: 40,
        ..logged("everysec")
    })
    .await;
    let load = run.load(&Habits::default(), 410).await;
    let before = run.cluster.epoch(FIRST[0]).await;
    run.cluster.local_mut(0).kill();
    meanwhile(AWAY_SECS).await;
    run.cluster.local_mut(0).restart().await;
    run.cluster.lends_again().await;
    assert_eq!(run.cluster.epoch(FIRST[0]).await, before);
    goes_on(run, load, before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_global_store_is_killed_and_comes_back_with_its_data() {
    let mut run = Run::start(Setup {
        local: StoreKind::Logged("everysec"),
        global: Some(StoreKind::Logged("everysec")),
        ..limits(40, 6_000, 12)
    })
    .await;
    let load = run.load(&Habits::default(), 420).await;
    let before = run.cluster.epoch(FIRST[0]).await;
    run.cluster.global_mut().restart().await;
    opens_again(&run, "the global store").await;
    goes_on(run, load, before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_dies_with_a_store_that_is_promised_to_keep_all() {
    let mut run = Run::start(Setup {
        store: "durable = \"restart\"\n".to_owned(),
        ..logged("always")
    })
    .await;
    let load = run.load(&Habits::default(), 430).await;
    let before = run.cluster.epoch(FIRST[0]).await;
    run.cluster.node_mut(NodeAt(0, 1)).kill().await;
    run.cluster.local_mut(0).restart().await;
    run.cluster.restart(NodeAt(0, 1)).await;
    // The lease of a node, and a sync.
    opens_again(&run, "with a promise").await;
    goes_on(run, load, before).await;
}

/// Returns a setup with one store whose operator promises this.
fn promised(kind: StoreKind, promise: &str) -> Setup {
    Setup {
        store: format!("{promise}\n"),
        ..limits(40, 6_000, 12).on_one_store(kind)
    }
}

/// The replica is never three seconds behind, so the promise is true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_names_a_replica_that_is_hardly_behind() {
    let mut run = Run::start(promised(StoreKind::Watched, "longest_loss = \"3s\"")).await;
    let load = run.load(&Habits::default(), 450).await;
    let before = run.cluster.epoch(FIRST[0]).await;
    let Store::Watched(watched) = run.cluster.local_store_mut(0) else {
        panic!("the setup has a sentinel");
    };
    watched.fail_over().await;
    opens_again(&run, "after a failover").await;
    goes_on(run, load, before).await;
}

/// A slot moves with all its keys, so both promises are true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_promises_something_moves_the_room() {
    for promise in ["durable = \"failover\"", "longest_loss = \"3s\""] {
        let mut run = Run::start(promised(StoreKind::Cluster, promise)).await;
        let load = run.load(&Habits::default(), 460).await;
        let before = run.cluster.epoch(FIRST[0]).await;
        move_the_room(run.cluster.local_store_mut(0)).await;
        let took = opens_again(&run, promise).await;
        assert!(took < OPENS_WITHIN, "{promise}: {took:?}");
        goes_on(run, load, before).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_promises_nothing_begins_another_epoch() {
    let mut run = Run::start(logged("no")).await;
    let load = run.load(&Habits::default(), 440).await;
    let before = run.cluster.epoch(FIRST[0]).await;
    run.cluster.local_mut(0).restart().await;
    let before = before.expect("a node that serves has an epoch");
    run.cluster.begins_another_epoch(before).await;
    run.cluster.lends_again().await;
    run.check(load).await;
}
