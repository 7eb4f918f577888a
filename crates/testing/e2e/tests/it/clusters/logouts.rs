//! Logouts, with the tickets sent to other nodes at once.

use anteroom_testkit::load::{Habits, NodeChoice};

use super::{Run, meanwhile};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_are_sent_to_other_nodes_right_after_a_logout() {
    let run = Run::small().await;
    let habits = Habits {
        node_choice: NodeChoice::InDataCenter,
        pages: 1..=2,
        replays_after_logout: 4,
        log_out_percent: 100,
        ..Habits::default()
    };
    let load = run.load(&habits, 180).await;
    meanwhile(25).await;
    let counters = run.check(load).await;
    assert!(counters.replayed.1 > 0, "{counters}");
}
