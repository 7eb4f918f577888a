//! The gateway is paused for longer than its lease, and then continues.

use std::time::Duration;

use anteroom_room::ledger::LEASE_TTL;
use tokio::time::sleep;

use crate::limits::limits;
use crate::support::eventually;
use crate::support::stage::Stage;
use crate::support::visitors::{self, short_visits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_for_longer_than_its_lease_it_keeps_limits_and_works_again() {
    // Seats last longer than the pause, so that requests in flight are not late.
    let stage = Stage::open(limits(10, 6_000), "15s").await;
    let endless = stage.fill(3).await;
    let load = visitors::send(&stage.address, 40, &short_visits());
    let others_wait = async || stage.waiting().await >= 20.0;
    eventually("the others wait", others_wait).await;
    stage.gateway().signal("STOP");
    sleep(Duration::from_millis(LEASE_TTL.0 + 1_000)).await; // tidy: time passes
    let (pages, entered) = (endless.counters().pages, load.counters().entered);
    stage.gateway().signal("CONT");
    eventually("active visitors pass, and others enter", async || {
        endless.counters().pages >= pages + 9 && load.counters().entered >= entered + 60
    })
    .await;
    visitors::stop_endless(endless, 3).await;
    visitors::stop(load).await;
    stage.assert_within_limits();
}
