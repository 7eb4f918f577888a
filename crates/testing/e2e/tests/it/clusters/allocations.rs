//! The three allocations that promise no limit, on real nodes: visitors go in, nobody with a valid
//! ticket is queued. Two of them keep to a minute's admissions while nodes know how many they are;
//! by how much the third misses them, and all of them the seats, is printed.

use anteroom_e2e::crowd::{Crowd, Habits};

use super::{Run, is_told_full, limits, meanwhile};

/// Many more come at once than may. Returns the most that were admitted in a minute that has sixty.
async fn run_with(allocation: &str) -> usize {
    let mut setup = limits(120, 60, 20);
    setup.allocation = allocation.to_owned();
    let run = Run::start(setup).await;
    run.cluster.know_each_other().await;
    let crowd = Crowd::at_once(&run.cluster.doors(), 300, &Habits::default(), 200);
    is_told_full(&crowd).await;
    meanwhile(12).await;
    let counters = crowd.go_home().await;
    run.cluster.assert_nobody_thrown_out(&counters);
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
