//! Wrong wall clocks: those of nodes by 200 ms either way, and a store's by hours, from its first
//! start on or stepped.

use anteroom_e2e::cluster::Setup;
use anteroom_e2e::stores::{Store, StoreKind};
use anteroom_testkit::load::{Habits, NodeAt};

use crate::clusters::{Load, Run, limits, meanwhile};

/// Offsets of the first and the second node of each data center; the third has the machine's clock.
const APART_MS: [i64; 2] = [-200, 200];
const STEP_MS: i64 = 7_200_000;
/// Shortest time of a request from a node to the origin on a busy machine, as processes see it.
const WAY_MS: i64 = 100;

/// Returns a setup with forty seats, and nodes whose clocks differ.
fn apart() -> Setup {
    Setup {
        clocks_ms: APART_MS.to_vec(),
        ..limits(40, 600, 12)
    }
}

/// Fails if the nodes' clocks do not differ, because then a run proves nothing.
fn check_clocks(run: &Run) {
    for data_center in 0..2 {
        for (number, ahead) in APART_MS.into_iter().chain([0]).enumerate() {
            let name = run.cluster.node(NodeAt(data_center, number)).name();
            let behind = run.cluster.origin().clock_behind_ms(name);
            let behind = behind.expect("each node has admitted a visitor");
            eprintln!("the clock of {name} is {behind} ms behind or less");
            assert!(
                (-5..WAY_MS).contains(&(behind + ahead)),
                "{name}: {behind} ms"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clocks_of_nodes_are_400_ms_apart() {
    let run = Run::start(apart()).await;
    let load = run.load(&Habits::default(), 260).await;
    meanwhile(25).await;
    check_clocks(&run);
    let counters = run.check(load).await;
    assert_eq!(counters.ran_out, 0, "{counters}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_data_centers_store_is_stepped_forth_and_back() {
    let setup = Setup {
        local: StoreKind::Clocked(0),
        ..apart()
    };
    let mut run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 270).await;
    step(run.cluster.local_store_mut(0), STEP_MS).await;
    meanwhile(10).await;
    step(run.cluster.local_store_mut(0), 0).await;
    goes_on(run, load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_the_global_store_is_stepped_forth_and_back() {
    let setup = Setup {
        global: Some(StoreKind::Clocked(0)),
        ..apart()
    };
    let mut run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 280).await;
    step(run.cluster.global_store_mut(), STEP_MS).await;
    meanwhile(10).await;
    step(run.cluster.global_store_mut(), 0).await;
    goes_on(run, load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_store_clocks_step_back_while_a_node_is_replaced() {
    let setup = Setup {
        local: StoreKind::Clocked(0),
        global: Some(StoreKind::Clocked(0)),
        ..apart()
    };
    let mut run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 290).await;
    for data_center in 0..2 {
        step(run.cluster.local_store_mut(data_center), -STEP_MS).await;
    }
    step(run.cluster.global_store_mut(), -STEP_MS).await;
    // A new node compares its clock with the store's.
    run.cluster.node_mut(NodeAt(0, 2)).kill().await;
    run.cluster.restart(NodeAt(0, 2)).await;
    // The runs do not check how soon admissions continue after a kill: visitors who waited there
    // delay others for a while.
    meanwhile(20).await;
    check_clocks(&run);
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_stores_are_hours_slow_from_their_first_start() {
    let setup = Setup {
        local: StoreKind::Clocked(-STEP_MS),
        global: Some(StoreKind::Clocked(-STEP_MS)),
        ..apart()
    };
    let run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 300).await;
    goes_on(run, load).await;
}

/// A node that starts knows nothing of the time before the step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_are_replaced_in_turn_after_the_stores_stepped_back() {
    let setup = Setup {
        local: StoreKind::Clocked(0),
        global: Some(StoreKind::Clocked(0)),
        ..apart()
    };
    let mut run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 310).await;
    for data_center in 0..2 {
        step(run.cluster.local_store_mut(data_center), -STEP_MS).await;
    }
    step(run.cluster.global_store_mut(), -STEP_MS).await;
    for node in run.cluster.all() {
        run.cluster.node_mut(node).terminate().await;
        run.cluster.restart(node).await;
    }
    goes_on(run, load).await;
}

async fn step(store: &Store, offset_ms: i64) {
    let Store::Clocked(server) = store else {
        panic!("the setup has a store with a clock of its own");
    };
    server.step_to(offset_ms).await;
}

/// Checks that a store's clock affects nothing: no new epoch begins, and admissions continue.
async fn goes_on(run: Run, load: Load) {
    run.cluster.admits(20).await;
    meanwhile(12).await;
    check_clocks(&run);
    run.check(load).await;
}
