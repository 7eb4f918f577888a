//! Far too many visitors while everything works.

use std::time::Duration;

use anteroom_e2e::eventually;
use anteroom_testkit::load::{Habits, NodeAt, NodeChoice, Phase, VisitorCounts, VisitorLoad};

use super::{Run, limits, meanwhile, room_is_full};

/// Returns phases from a tenth of the seats to ten times as many visitors, within two seconds.
fn spike(seats: u32) -> [Phase; 2] {
    [(6, seats / 10), (2, seats * 10)].map(|(secs, visitors)| Phase {
        lasts: Duration::from_secs(secs),
        visitors,
    })
}

/// Sends such a load; returns its counts.
async fn check_spike(run: &Run, habits: Habits) -> VisitorCounts {
    let load = VisitorLoad::send(&run.cluster.routes(), &spike(40), &habits, 1);
    room_is_full(&load).await;
    meanwhile(25).await;
    let counters = load.stop().await;
    run.cluster.assert_kept(&counters);
    assert_eq!(counters.ran_out, 0, "{counters}");
    counters
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spike_from_a_tenth_to_ten_times_the_limit() {
    let run = Run::small().await;
    check_spike(&run, Habits::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spike_that_is_even_over_all_nodes() {
    let run = Run::small().await;
    let habits = Habits {
        first_data_center_percent: 50,
        ..Habits::default()
    };
    check_spike(&run, habits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_visitors_come_to_one_node() {
    let run = Run::small().await;
    let habits = Habits {
        node_choice: NodeChoice::Only(NodeAt(1, 2)),
        ..Habits::default()
    };
    check_spike(&run, habits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minute_allows_fewer_than_there_are_seats() {
    let run = Run::start(limits(400, 60, 12)).await;
    let load = VisitorLoad::at_once(&run.cluster.routes(), 300, &Habits::default(), 2);
    let has_two_minutes = async || run.cluster.origin().minutes().len() >= 2;
    eventually("a visitor is admitted in another minute", has_two_minutes).await;
    meanwhile(5).await;
    let counters = load.stop().await;
    run.cluster.assert_kept(&counters);
    assert_eq!(counters.ran_out, 0, "{counters}");
}
