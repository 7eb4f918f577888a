//! The gateway is killed or stopped, and started again on the same folder.

use crate::limits::{PLENTY, limits};
use crate::support::crowd::{Habits, LoadGenerator};
use crate::support::eventually;
use crate::support::line::{Line, SEATS};
use crate::support::stage::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_again_and_again_it_keeps_limits_and_everybody_inside() {
    let mut stage = Stage::open(limits(20, 6_000), "10s").await;
    let stay = stage.fill(5).await;
    let crowd = LoadGenerator::send(&stage.door, 60, Habits::default());
    for incarnation in 1..=4 {
        let (pages, entered) = (stay.counters().pages, crowd.counters().entered);
        // At another moment each time: while lending, renewing, giving back.
        eventually("visitors come, look around and leave", async || {
            stay.counters().pages >= pages + 10 * incarnation
                && crowd.counters().entered >= entered + 10
        })
        .await;
        stage.kill().await;
        stage.start().await;
    }
    let entered = crowd.counters().entered;
    let comes_back = async || crowd.counters().entered >= entered + 60;
    eventually("visitors come in again", comes_back).await;
    let (stay, crowd) = (stay.go_home().await, crowd.go_home().await);
    eprintln!("those who stay: {stay:?}; the crowd: {crowd:?}");
    stage.assert_within_limits();
    assert_eq!(stay.entered, 5, "each was inside once, over all restarts");
    assert_eq!((stay.thrown_out, crowd.thrown_out), (0, 0));
    assert!(
        stay.unanswered + crowd.unanswered > 0,
        "it was killed under load"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_it_remembers_the_admissions_of_the_minute() {
    let mut stage = Stage::open(limits(PLENTY, 40), "5s").await;
    let crowd = LoadGenerator::send(&stage.door, 80, Habits::default());
    for _ in 0..3 {
        let tells_others_to_wait = async || stage.waiting().await >= 20.0;
        eventually("the others wait", tells_others_to_wait).await;
        stage.kill().await;
        stage.start().await;
    }
    let entered = crowd.go_home().await.entered;
    let minutes = stage.origin.minutes();
    assert!(minutes.values().all(|&of| of <= 40), "{minutes:?}");
    assert!(entered > 0, "{minutes:?}");
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_it_keeps_the_order_of_those_who_wait() {
    let mut stage = Stage::open(limits(SEATS, PLENTY), "2s").await;
    let line = Line::at(&stage.door, &stage.origin).await;
    keeps_order_over(&mut stage, line, async |stage| stage.kill().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_it_keeps_the_order_of_those_who_wait() {
    let mut stage = Stage::open(limits(SEATS, PLENTY), "2s").await;
    let line = Line::at(&stage.door, &stage.origin).await;
    keeps_order_over(&mut stage, line, async |stage| stage.terminate().await).await;
}

async fn keeps_order_over(stage: &mut Stage, mut line: Line, end: impl AsyncFnOnce(&mut Stage)) {
    for group in ["/group-1", "/group-2"] {
        line.join(group, stage.gateway().admin).await;
    }
    end(stage).await;
    stage.start().await;
    line.add("/newcomers");
    line.open().await;
    line.assert_all_in_order(&stage.origin).await;
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_every_seat_is_known_and_none_is_invented() {
    let mut stage = Stage::open(limits(20, PLENTY), "10s").await;
    let stay = stage.fill(8).await;
    for _ in 0..2 {
        stage.terminate().await;
        stage.start().await;
        let operator = stage.operator();
        let knows = async || operator.shows("anteroom_seats_active", 8.0).await;
        eventually("it knows who is inside", knows).await;
        assert!(operator.shows("anteroom_seats_phantom", 0.0).await);
        let pages = stay.counters().pages;
        let passes = async || stay.counters().pages >= pages + 16;
        eventually("those inside pass", passes).await;
    }
    // The twelve seats that are free can be taken at once.
    let crowd = LoadGenerator::send(&stage.door, 40, Habits::stay());
    // The origin sees a visitor before the visitor sees its page.
    let all_are_in = async || stage.origin.inside() == 20 && crowd.counters().entered >= 12;
    eventually("all seats are taken", all_are_in).await;
    let (stay, crowd) = (stay.go_home().await, crowd.go_home().await);
    assert_eq!((stay.entered, stay.thrown_out), (8, 0), "{stay:?}");
    assert_eq!((crowd.entered, crowd.thrown_out), (12, 0), "{crowd:?}");
    stage.assert_within_limits();
}
