//! Failovers of stores under load: to a replica without the newest writes, to the one that a
//! sentinel promotes, and to another server of a cluster.
//!
//! A new server may have lost something. So the global store, or the only one, begins another
//! epoch. After that it grants no leases until all earlier ones have expired: ten minutes with a
//! global store, which is longer than a run.

use anteroom_e2e::cluster::Setup;
use anteroom_e2e::eventually;
use anteroom_e2e::stores::{Replicated, Store, StoreKind};
use anteroom_testkit::load::{Habits, NodeAt};

use crate::clusters::{Run, limits, meanwhile};

/// Time without replication before the replica takes over.
const BEHIND_SECS: u64 = 4;

/// Returns a setup with forty seats and this kind of global store.
fn with_global(kind: StoreKind) -> Setup {
    Setup {
        global: Some(kind),
        ..limits(40, 600, 12)
    }
}

fn replicated(store: &mut Store) -> &mut Replicated {
    match store {
        Store::Replicated(pair) => pair,
        _ => panic!("the setup has a replica"),
    }
}

/// Lets a replica fall behind, and then take over.
async fn fail_over_behind(pair: &mut Replicated) {
    pair.cut_replication();
    meanwhile(BEHIND_SECS).await;
    let lag = pair.lag_bytes().await;
    assert!(lag > 0, "nothing was written in {BEHIND_SECS} s");
    eprintln!("the replica takes over without the last {lag} bytes");
    pair.fail_over().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_replica_of_the_global_store_lacks_the_newest_writes() {
    let mut run = Run::start(with_global(StoreKind::Replicated)).await;
    let load = run.load(&Habits::default(), 200).await;
    let before = run.cluster.epoch(NodeAt(0, 0)).await;
    fail_over_behind(replicated(run.cluster.global_store_mut())).await;
    let before = before.expect("a node that serves has an epoch");
    run.cluster.begins_another_epoch(before).await;
    // Longer than all seats that were given before.
    meanwhile(17).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_centers_promoted_replica_lacks_the_newest_writes() {
    let setup = Setup {
        local: StoreKind::Replicated,
        ..limits(40, 600, 12)
    };
    let mut run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 210).await;
    fail_over_behind(replicated(run.cluster.local_store_mut(0))).await;
    let pair = replicated(run.cluster.local_store_mut(0));
    eventually("nodes write to the replica", async || {
        pair.scripts_run_by_replica().await > 0
    })
    .await;
    meanwhile(20).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_replaces_the_master_of_the_global_store() {
    let mut run = Run::start(with_global(StoreKind::Watched)).await;
    let load = run.load(&Habits::default(), 220).await;
    let before = run.cluster.epoch(NodeAt(0, 0)).await;
    let Store::Watched(watched) = run.cluster.global_store_mut() else {
        panic!("the setup has a sentinel");
    };
    watched.fail_over().await;
    let before = before.expect("a node that serves has an epoch");
    run.cluster.begins_another_epoch(before).await;
    meanwhile(17).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_replaces_the_only_stores_master_and_admissions_go_on() {
    let setup = limits(40, 600, 8).on_one_store(StoreKind::Watched);
    let mut run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 230).await;
    let before = run.cluster.epoch(NodeAt(0, 0)).await;
    let Store::Watched(watched) = run.cluster.local_store_mut(0) else {
        panic!("the setup has a sentinel");
    };
    watched.fail_over().await;
    let before = before.expect("a node that serves has an epoch");
    run.cluster.begins_another_epoch(before).await;
    check_admissions_continue(&run).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_moves_the_room_to_another_server_and_admissions_go_on() {
    let setup = limits(40, 600, 8).on_one_store(StoreKind::Cluster);
    let mut run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 240).await;
    let before = run.cluster.epoch(NodeAt(0, 0)).await;
    move_the_room(run.cluster.local_store_mut(0)).await;
    let before = before.expect("a node that serves has an epoch");
    run.cluster.begins_another_epoch(before).await;
    check_admissions_continue(&run).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_global_cluster_moves_the_room_to_another_server() {
    let mut run = Run::start(with_global(StoreKind::Cluster)).await;
    let load = run.load(&Habits::default(), 250).await;
    let before = run.cluster.epoch(NodeAt(0, 0)).await;
    move_the_room(run.cluster.global_store_mut()).await;
    let before = before.expect("a node that serves has an epoch");
    run.cluster.begins_another_epoch(before).await;
    meanwhile(17).await;
    run.check(load).await;
}

/// Moves the data of a room from one server to another, with requests under way in each phase.
pub(super) async fn move_the_room(store: &Store) {
    let Store::Cluster(servers) = store else {
        panic!("the setup has a cluster");
    };
    let (from, slot) = servers.owner_of("{shop}").await;
    let to = (from + 1) % servers.servers().len();
    servers.begin_to_move(slot, from, to).await;
    meanwhile(1).await;
    servers.move_keys(slot, from, to).await;
    meanwhile(1).await;
    servers.end_move(slot, to).await;
}

/// Checks that admissions continue after a lease and a session. They wait for the end of the
/// minute, because its admissions may have been used. This takes from twenty seconds to over a
/// minute.
async fn check_admissions_continue(run: &Run) {
    run.cluster.lends_again().await;
    run.cluster.admits(20).await;
    meanwhile(5).await;
}
