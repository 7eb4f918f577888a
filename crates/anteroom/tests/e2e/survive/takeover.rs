//! A second gateway is started on the folder of one that runs.

use crate::limits::{PLENTY, limits};
use crate::support::crowd::{Habits, LoadGenerator, seat_end};
use crate::support::eventually;
use crate::support::process::Gateway;
use crate::support::stage::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_admits_only_when_the_first_has_let_go() {
    let mut stage = Stage::open(limits(10, PLENTY), "30s").await;
    let mut inside = stage.newcomer();
    let seat = seat_end(&inside.navigate("/").await).expect("the room is empty");
    let second = Gateway::start(&stage.flags()).await;
    let mut first = stage.take_gateway();
    stage.enter(second);

    // Beside the first: who is inside passes, nobody comes in.
    stage.queues_newcomers("store_unavailable").await;
    let mut same = inside.at(stage.door.address());
    let still = seat_end(&same.navigate("/").await).expect("it is inside");
    assert!(still >= seat);
    let log = stage.gateway().log();
    assert!(
        log.iter()
            .any(|line| line.contains("waiting for the other process to let go")),
        "{log:?}"
    );
    let mut other = inside.somebody_else();
    let answer = other.navigate("/").await;
    assert!(
        seat_end(&answer).is_some(),
        "the first one goes on admitting"
    );

    // The first leaves, but not before the last of its answers.
    let slow = tokio::spawn(async move { inside.navigate("/held").await });
    eventually("the origin was asked", async || stage.origin.held() == 1).await;
    first.signal("TERM");
    stage.admits_newcomers().await;
    assert!(
        !slow.is_finished(),
        "the first one waits for what is still open"
    );
    stage.origin.release();
    assert!(seat_end(&slow.await.unwrap()).is_some());
    assert_eq!(first.ended().await, Some(0));

    // From now on the second is like any other.
    let crowd = LoadGenerator::send(&stage.door, 40, Habits::stay());
    eventually("all seats are taken", async || stage.origin.inside() == 10).await;
    assert!(seat_end(&same.navigate("/").await).is_some());
    let mut other = other.at(stage.door.address());
    assert!(
        seat_end(&other.navigate("/").await).is_some(),
        "inside by the first"
    );
    assert_eq!(crowd.go_home().await.thrown_out, 0);
    stage.assert_within_limits();
}
