//! The gateway does not run for longer than its lease, and then runs on as if nothing had been.

use std::time::Duration;

use anteroom_room::ledger::LEASE_TTL;
use tokio::time::sleep;

use crate::limits::limits;
use crate::support::crowd::{Habits, LoadGenerator};
use crate::support::eventually;
use crate::support::stage::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_for_longer_than_its_lease_it_keeps_limits_and_works_again() {
    // Seats outlast the pause, so that requests that were under way are not late.
    let stage = Stage::open(limits(10, 6_000), "15s").await;
    let stay = stage.fill(3).await;
    let crowd = LoadGenerator::send(&stage.door, 40, Habits::default());
    let others_wait = async || stage.waiting().await >= 20.0;
    eventually("the others wait", others_wait).await;
    stage.gateway().signal("STOP");
    sleep(Duration::from_millis(LEASE_TTL.0 + 1_000)).await; // tidy: time passes
    let (pages, entered) = (stay.counters().pages, crowd.counters().entered);
    stage.gateway().signal("CONT");
    eventually("those inside pass, and others come in", async || {
        stay.counters().pages >= pages + 9 && crowd.counters().entered >= entered + 60
    })
    .await;
    let (stay, crowd) = (stay.go_home().await, crowd.go_home().await);
    assert_eq!((stay.entered, stay.thrown_out), (3, 0), "{stay:?}");
    assert_eq!(crowd.thrown_out, 0, "{crowd:?}");
    stage.assert_within_limits();
}
