//! A second gateway is started on the folder of a running one.

use crate::limits::{PLENTY, limits};
use crate::support::client::seat_end;
use crate::support::eventually;
use crate::support::process::Gateway;
use crate::support::stage::Stage;
use crate::support::visitors::{self, endless_visits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_admits_only_after_the_first_has_ended() {
    let mut stage = Stage::open(limits(10, PLENTY), "30s").await;
    let mut inside = stage.newcomer();
    let seat = seat_end(&inside.navigate("/").await).expect("the room is empty");
    let second = Gateway::start(&stage.flags()).await;
    let mut first = stage.take_gateway();
    stage.enter(second);

    // While the first one runs, active visitors pass at the second, and no new ones enter.
    stage.queues_newcomers("store_unavailable").await;
    let mut same = inside.at(stage.address.get().unwrap());
    let still = seat_end(&same.navigate("/").await).expect("it is inside");
    assert!(still >= seat);
    let waits = "waiting for another process to release the journal";
    stage.gateway().log_with(waits).await;
    let mut other = inside.new_client();
    let response = other.navigate("/").await;
    assert!(seat_end(&response).is_some(), "the first one still admits");

    // The first ends, but not before its last response.
    let slow = tokio::spawn(async move { inside.navigate("/held").await });
    eventually("the origin has the request", async || {
        stage.origin.held_requests() == 1
    })
    .await;
    first.signal("TERM");
    stage.admits_newcomers().await;
    assert!(!slow.is_finished(), "the first one waits for open requests");
    stage.origin.release();
    assert!(seat_end(&slow.await.unwrap()).is_some());
    assert_eq!(first.ended().await, Some(0));

    // From now on the second works like any other.
    let load = visitors::send(&stage.address, 40, &endless_visits());
    eventually("all seats are taken", async || stage.origin.inside() == 10).await;
    assert!(seat_end(&same.navigate("/").await).is_some());
    let mut other = other.at(stage.address.get().unwrap());
    assert!(
        seat_end(&other.navigate("/").await).is_some(),
        "admitted by the first"
    );
    visitors::stop(load).await;
    stage.assert_within_limits();
}
