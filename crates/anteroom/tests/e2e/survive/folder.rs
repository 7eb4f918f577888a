//! Somebody deletes the data folder.

use std::fs;
use std::path::Path;

use crate::limits::{PLENTY, limits};
use crate::support::crowd::{Habits, LoadGenerator, seat_end};
use crate::support::eventually;
use crate::support::stage::Stage;

/// Deletes a folder into which somebody may be writing.
async fn delete(folder: &Path) {
    eventually("the folder is gone", async || {
        fs::remove_dir_all(folder).is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_deleted_under_a_running_gateway_is_written_anew() {
    let mut stage = Stage::open(limits(10, PLENTY), "10s").await;
    let stay = stage.fill(4).await;
    let crowd = LoadGenerator::send(&stage.door, 30, Habits::default());
    eventually("all seats are taken", async || stage.origin.inside() == 10).await;
    delete(&stage.data()).await;
    let operator = stage.operator();
    eventually("the journal is written anew", async || {
        operator.shows("anteroom_journal_rewrites_total", 1.0).await
    })
    .await;
    let log = stage.gateway().log();
    let says_so = |line: &String| line.contains("the data folder was deleted");
    assert!(log.iter().any(says_so), "{log:?}");
    stage.kill().await;
    stage.start().await;
    let (pages, entered) = (stay.counters().pages, crowd.counters().entered);
    eventually("those inside pass, and others come in", async || {
        stay.counters().pages >= pages + 20 && crowd.counters().entered >= entered + 5
    })
    .await;
    let (stay, crowd) = (stay.go_home().await, crowd.go_home().await);
    assert_eq!((stay.entered, stay.thrown_out), (4, 0), "{stay:?}");
    assert_eq!(crowd.thrown_out, 0, "{crowd:?}");
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_while_nothing_runs_everybody_is_new_and_limits_hold() {
    let mut stage = Stage::open(limits(5, PLENTY), "30s").await;
    let mut known = Vec::new();
    for _ in 0..5 {
        let mut visitor = stage.newcomer();
        assert!(seat_end(&visitor.navigate("/known").await).is_some());
        known.push(visitor);
    }
    stage.terminate().await;
    delete(&stage.data()).await;
    // Tickets of before are worth nothing from now on, so that nobody of then is inside.
    stage.origin.begin_anew();
    stage.start().await;
    let crowd = LoadGenerator::send(&stage.door, 20, Habits::stay());
    eventually("all seats are taken", async || stage.origin.inside() == 5).await;
    for visitor in known {
        let answer = visitor.at(stage.door.address()).navigate("/known").await;
        assert!(answer.is_queued(), "its ticket is of another deployment");
    }
    let operator = stage.operator();
    let strange = operator.metric("anteroom_invalid_tickets_total").await;
    assert!(strange.is_some_and(|strange| strange >= 5.0), "{strange:?}");
    assert_eq!(crowd.go_home().await.thrown_out, 0);
    stage.assert_within_limits();
}
