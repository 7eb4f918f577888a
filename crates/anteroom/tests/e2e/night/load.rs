//! What an operator does on the night, while a crowd comes and goes: the limits hold all the time.

use anteroom_room::rules::Limits;

use crate::support::crowd::{Habits, LoadGenerator};
use crate::support::eventually;
use crate::support::stage::Stage;

use super::{said, token_file};

const CROWD: usize = 120;
const SMALL: Limits = Limits {
    total_active_users: 20,
    new_users_per_minute: 10_000,
};

async fn say(stage: &Stage, words: &[&str]) {
    said(stage.gateway(), &token_file(&stage.data()), words).await;
}

async fn queued_answers(stage: &Stage) -> f64 {
    let series = "anteroom_queued_responses_total{room=\"main\"}";
    let answers = stage.operator().metric(series).await;
    answers.expect("it is shown once somebody waits")
}

/// Waits until everybody inside has left and all others have asked again, twice on average: whoever
/// could go in would have.
async fn nobody_follows_those_inside(stage: &Stage) {
    #[expect(clippy::cast_precision_loss, reason = "a crowd of hundreds")]
    let crowd = CROWD as f64;
    let began = queued_answers(stage).await;
    eventually(
        "whoever had passed before has reached the origin",
        async || queued_answers(stage).await >= began + crowd,
    )
    .await;
    let before = stage.origin.admissions();
    let enough = began + 3.0 * crowd;
    eventually("the room empties while others ask", async || {
        stage.origin.inside() == 0 && queued_answers(stage).await >= enough
    })
    .await;
    assert_eq!(stage.origin.admissions(), before, "nobody goes in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_with_a_crowd() {
    let stage = Stage::open(SMALL, "4s").await;
    let crowd = LoadGenerator::send(&stage.door, CROWD, Habits::default());
    eventually("the room is full", async || stage.origin.inside() == 20).await;

    say(&stage, &["pause", "--message", "Payment problem"]).await;
    nobody_follows_those_inside(&stage).await;
    say(&stage, &["resume"]).await;
    eventually("the room fills again", async || stage.origin.inside() == 20).await;

    // Fewer seats: at no moment more inside than before, until it is as many as there may be; and
    // not more while others take their places.
    say(&stage, &["set", "total_active_users=8"]).await;
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

    say(&stage, &["queue-all"]).await;
    nobody_follows_those_inside(&stage).await;
    say(&stage, &["set", "total_active_users=20"]).await;
    say(&stage, &["open"]).await;
    eventually("the room is full again", async || {
        stage.origin.inside() == 20
    })
    .await;
    crowd.go_home().await;
    stage.assert_within_limits();
}
