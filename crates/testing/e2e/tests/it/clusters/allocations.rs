//! Allocations without a promised limit, on real nodes: visitors enter, and no visitor with a valid
//! ticket is queued. `even` keeps the admissions of a minute while nodes know their number, and so
//! do `counters` in the first minute of a room. The runs print by how much the others exceed them,
//! and all of them the seats.

use anteroom_testkit::load::{Habits, VisitorLoad};

use super::{Run, limits, meanwhile, room_is_full};

/// Sends many more visitors at once than the limit. Returns the admissions of each minute, of which
/// each has sixty.
async fn run_with(allocation: &str) -> Vec<usize> {
    let mut setup = limits(120, 60, 20);
    setup.allocation = allocation.to_owned();
    let run = Run::start(setup).await;
    run.cluster.know_each_other().await;
    let load = VisitorLoad::at_once(&run.cluster.routes(), 300, &Habits::default(), 200);
    room_is_full(&load).await;
    meanwhile(12).await;
    let counters = load.stop().await;
    run.cluster.assert_no_valid_ticket_queued(&counters);
    let minutes = run.cluster.origin().minutes();
    let admissions: Vec<usize> = minutes.values().copied().collect();
    assert!(!admissions.is_empty(), "{counters}");
    admissions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn even_lets_in_at_every_node_its_part() {
    let admissions = run_with("even").await;
    let most = admissions.iter().max();
    assert!(most <= Some(&60), "{admissions:?} in the minutes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curve_lets_in_by_utilization() {
    run_with("curve").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_count_in_the_stores() {
    let admissions = run_with("counters").await;
    // Later minutes are shared by what nodes know of the minute before. Some know it a moment
    // later than others, so the shares of two nodes may sum to more than a minute has.
    let first = admissions.first();
    assert!(first <= Some(&60), "{admissions:?} in the minutes");
}
