//! The data folder is deleted.

use std::fs;
use std::path::Path;

use crate::limits::{PLENTY, limits};
use crate::support::client::seat_end;
use crate::support::eventually;
use crate::support::stage::Stage;
use crate::support::visitors::{self, endless_visits, short_visits};

/// Deletes a folder into which a process may be writing.
async fn delete(folder: &Path) {
    eventually("the folder is gone", async || {
        fs::remove_dir_all(folder).is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_deleted_under_a_running_gateway_is_rewritten() {
    let mut stage = Stage::open(limits(10, PLENTY), "10s").await;
    let endless = stage.fill(4).await;
    let load = visitors::send(&stage.address, 30, &short_visits());
    eventually("all seats are taken", async || stage.origin.inside() == 10).await;
    delete(&stage.data()).await;
    let operator = stage.operator();
    eventually("the journal is rewritten", async || {
        operator.shows("anteroom_journal_rewrites_total", 1.0).await
    })
    .await;
    let gateway = stage.gateway();
    gateway.log_with("the data folder was deleted").await;
    stage.kill().await;
    stage.start().await;
    let (pages, entered) = (endless.counters().pages, load.counters().entered);
    eventually("active visitors pass, and others enter", async || {
        endless.counters().pages >= pages + 20 && load.counters().entered >= entered + 5
    })
    .await;
    visitors::stop_endless(endless, 4).await;
    visitors::stop(load).await;
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_deletion_without_a_gateway_all_are_new_and_limits_hold() {
    let mut stage = Stage::open(limits(5, PLENTY), "30s").await;
    let mut known = Vec::new();
    for _ in 0..5 {
        let mut visitor = stage.newcomer();
        assert!(seat_end(&visitor.navigate("/known").await).is_some());
        known.push(visitor);
    }
    stage.terminate().await;
    delete(&stage.data()).await;
    // Earlier tickets are not valid any more, so none of their visitors is active.
    stage.origin.reset();
    stage.start().await;
    let load = visitors::send(&stage.address, 20, &endless_visits());
    eventually("all seats are taken", async || stage.origin.inside() == 5).await;
    for visitor in known {
        let response = visitor
            .at(stage.address.get().unwrap())
            .navigate("/known")
            .await;
        assert!(response.is_queued(), "its ticket is of another deployment");
    }
    let operator = stage.operator();
    let strange = operator.metric("anteroom_invalid_tickets_total").await;
    assert!(strange.is_some_and(|strange| strange >= 5.0), "{strange:?}");
    visitors::stop(load).await;
    stage.assert_within_limits();
}
