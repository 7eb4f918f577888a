//! Visitors who change nodes and data centers while everything works.

use anteroom_testkit::load::{Habits, NodeChoice};

use super::{Run, meanwhile};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_change_the_node_with_every_request() {
    let run = Run::small().await;
    let habits = Habits {
        node_choice: NodeChoice::InDataCenter,
        ..Habits::default()
    };
    let load = run.load(&habits, 140).await;
    meanwhile(25).await;
    let counters = run.check(load).await;
    assert_eq!(counters.ran_out, 0, "{counters}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_change_the_data_center_with_every_request() {
    let run = Run::small().await;
    let habits = Habits {
        node_choice: NodeChoice::Anywhere,
        pages: 8..=16,
        ..Habits::default()
    };
    let load = run.load(&habits, 150).await;
    meanwhile(30).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_visitor_sends_six_requests_at_once_to_different_nodes() {
    let run = Run::small().await;
    let habits = Habits {
        node_choice: NodeChoice::Anywhere,
        at_once: 6,
        ..Habits::default()
    };
    let load = run.load(&habits, 160).await;
    meanwhile(25).await;
    run.check(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_are_replayed_also_after_a_logout() {
    let run = Run::small().await;
    let habits = Habits {
        node_choice: NodeChoice::Anywhere,
        pages: 2..=4,
        replay_percent: 60,
        log_out_percent: 80,
        ..Habits::default()
    };
    let load = run.load(&habits, 170).await;
    meanwhile(25).await;
    let counters = run.check(load).await;
    assert!(
        counters.replayed.0 > 0 && counters.replayed.1 > 0,
        "{counters}"
    );
}
