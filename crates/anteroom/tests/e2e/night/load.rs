//! Commands of an operator while visitors come and go: the limits hold all the time.

use anteroom_room::rules::Limits;

use crate::support::eventually;
use crate::support::stage::Stage;

use super::{room_json, token_file};
use crate::support::visitors::{self, short_visits};

const VISITORS: u32 = 120;
const SMALL: Limits = Limits {
    total_active_users: 20,
    new_users_per_minute: 10_000,
};

async fn operate(stage: &Stage, words: &[&str]) {
    room_json(stage.gateway(), &token_file(&stage.data()), words).await;
}

async fn queued_responses(stage: &Stage) -> f64 {
    let series = "anteroom_queued_responses_total{room=\"main\"}";
    let answers = stage.operator().metric(series).await;
    answers.expect("it is shown once somebody waits")
}

/// Waits until all active visitors have left and all others have polled again, twice on average: a
/// visitor who could enter would have entered.
async fn assert_nobody_enters(stage: &Stage) {
    let load = f64::from(VISITORS);
    let began = queued_responses(stage).await;
    eventually("all earlier requests have reached the origin", async || {
        queued_responses(stage).await >= began + load
    })
    .await;
    let before = stage.origin.admissions();
    let enough = began + 3.0 * load;
    eventually("the room empties while others poll", async || {
        stage.origin.inside() == 0 && queued_responses(stage).await >= enough
    })
    .await;
    assert_eq!(stage.origin.admissions(), before, "no visitor enters");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_while_an_operator_changes_them_under_load() {
    let stage = Stage::open(SMALL, "4s").await;
    let load = visitors::send(&stage.address, VISITORS, &short_visits());
    eventually("the room is full", async || stage.origin.inside() == 20).await;

    operate(&stage, &["pause", "--message", "Payment problem"]).await;
    assert_nobody_enters(&stage).await;
    operate(&stage, &["resume"]).await;
    // Visits are short: on a slow machine twenty are seldom inside at the same moment.
    eventually("more than eight are inside again", async || {
        stage.origin.inside() > 8
    })
    .await;

    // Fewer seats: never more active visitors than before, until the new limit is reached; and not
    // more while others take their seats.
    operate(&stage, &["set", "total_active_users=8"]).await;
    let mut most = stage.origin.inside().max(8);
    let mut enough = None;
    eventually("eight at a time, and twenty after them", || {
        let (inside, admitted) = (stage.origin.inside(), stage.origin.admissions());
        assert!(inside <= most, "{inside} inside after {most}");
        most = inside.max(8);
        if most == 8 {
            enough.get_or_insert(admitted + 20);
        }
        let is_enough = enough.is_some_and(|enough| admitted >= enough);
        async move { is_enough }
    })
    .await;

    operate(&stage, &["queue-all"]).await;
    assert_nobody_enters(&stage).await;
    operate(&stage, &["set", "total_active_users=20"]).await;
    operate(&stage, &["open"]).await;
    eventually("more than eight are inside at last", async || {
        stage.origin.inside() > 8
    })
    .await;
    load.stop().await;
    stage.assert_within_limits();
}
