//! Do those who came first go in first?

use super::{PLENTY, limits};
use crate::support::line::{Line, SEATS};
use crate::support::stage::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_go_in_as_they_came_and_newcomers_come_last() {
    let stage = Stage::open(limits(SEATS, PLENTY), "1s").await;
    let mut line = Line::at(&stage.door, &stage.origin).await;
    for group in ["/group-1", "/group-2", "/group-3", "/group-4"] {
        line.join(group, stage.gateway().admin).await;
    }
    line.open().await;
    // These find free seats when they come, and must leave them to those who wait.
    line.add("/newcomers");
    line.assert_all_in_order(&stage.origin).await;
    stage.assert_within_limits();
}
