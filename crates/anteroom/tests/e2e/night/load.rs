//! What an operator does on the night, while a crowd comes and goes: the limits hold all the time.

use std::time::Duration;

use anteroom_core::rules::Limits;

use crate::support::crowd::{Crowd, Habits};
use crate::support::eventually;
use crate::support::stage::Stage;

use super::{said, token_file};

const SMALL: Limits = Limits {
    total_active_users: 20,
    new_users_per_minute: 10_000,
};

async fn say(stage: &Stage, words: &[&str]) {
    said(stage.gateway(), &token_file(&stage.data()), words).await;
}

async fn meanwhile(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await; // tidy: time passes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_with_a_crowd() {
    let stage = Stage::open(SMALL, "4s").await;
    let crowd = Crowd::send(&stage.door, 120, Habits::default());
    eventually("the room is full", async || stage.origin.inside() == 20).await;

    say(&stage, &["pause", "--message", "Payment problem"]).await;
    let before = stage.origin.admissions().len();
    meanwhile(3_000).await;
    assert_eq!(
        stage.origin.admissions().len(),
        before,
        "nobody goes in during a pause"
    );
    say(&stage, &["resume"]).await;
    eventually("they go in again", async || {
        stage.origin.admissions().len() > before
    })
    .await;

    // Fewer seats: at no moment more inside than before, until it is as many as there may be.
    say(&stage, &["set", "total_active_users=8"]).await;
    let mut most = stage.origin.inside().max(8);
    for _ in 0..60 {
        meanwhile(100).await;
        let inside = stage.origin.inside();
        assert!(inside <= most, "{inside} inside after {most}");
        most = inside.max(8);
    }
    assert_eq!(most, 8, "after a session it is as many as there may be");

    say(&stage, &["queue-all"]).await;
    let before = stage.origin.admissions().len();
    meanwhile(2_000).await;
    assert_eq!(stage.origin.admissions().len(), before, "queue-all gathers");
    say(&stage, &["set", "total_active_users=20"]).await;
    say(&stage, &["open"]).await;
    eventually("the room is full again", async || {
        stage.origin.inside() == 20
    })
    .await;
    crowd.go_home().await;
    stage.assert_within_limits();
}
