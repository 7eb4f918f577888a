//! Allocations without a promised limit, on real nodes: visitors enter, and no visitor with a valid
//! ticket is queued. Two of them keep the admissions of a minute while nodes know their number. The
//! runs print by how much the third exceeds them, and all of them the seats.

use anteroom_testkit::load::{Habits, VisitorLoad};

use super::{Run, limits, meanwhile, room_is_full};

/// Sends many more visitors at once than the limit. Returns the most admissions in a minute, which
/// has sixty.
async fn run_with(allocation: &str) -> usize {
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
    let admissions = minutes.values().copied().max().unwrap_or(0);
    assert!(admissions > 0, "{counters}");
    admissions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn even_lets_in_at_every_node_its_part() {
    let admissions = run_with("even").await;
    assert!(admissions <= 60, "{admissions} in a minute");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curve_lets_in_by_utilization() {
    run_with("curve").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_count_in_the_stores() {
    let admissions = run_with("counters").await;
    assert!(admissions <= 60, "{admissions} in a minute");
}
