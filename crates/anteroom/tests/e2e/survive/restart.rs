//! The gateway is killed or stopped, and started again on the same folder.

use crate::limits::{PLENTY, limits};
use crate::support::eventually;
use crate::support::group_queue::{GroupQueue, SEATS};
use crate::support::stage::Stage;
use crate::support::visitors::{self, endless_visits, short_visits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_repeatedly_under_load_it_keeps_limits_and_sessions() {
    let mut stage = Stage::open(limits(20, 6_000), "10s").await;
    let endless = stage.fill(5).await;
    let load = visitors::send(&stage.address, 60, &short_visits());
    for incarnation in 1..=4 {
        let (pages, entered) = (endless.counters().pages, load.counters().entered);
        // At another moment each time: while it grants, renews or returns leases.
        eventually("visitors come, look around and leave", async || {
            endless.counters().pages >= pages + 10 * incarnation
                && load.counters().entered >= entered + 10
        })
        .await;
        stage.kill().await;
        stage.start().await;
    }
    let entered = load.counters().entered;
    let comes_back = async || load.counters().entered >= entered + 60;
    eventually("visitors enter again", comes_back).await;
    // Each was inside once, over all restarts.
    let endless = visitors::stop_endless(endless, 5).await;
    let load = visitors::stop(load).await;
    stage.assert_within_limits();
    assert!(
        endless.unanswered + load.unanswered > 0,
        "it was killed under load"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_it_remembers_the_admissions_of_the_minute() {
    let mut stage = Stage::open(limits(PLENTY, 40), "5s").await;
    let load = visitors::send(&stage.address, 80, &short_visits());
    for _ in 0..3 {
        let queues_others = async || stage.waiting().await >= 20.0;
        eventually("the others wait", queues_others).await;
        stage.kill().await;
        stage.start().await;
    }
    let entered = load.stop().await.entered;
    let minutes = stage.origin.minutes();
    assert!(minutes.values().all(|&of| of <= 40), "{minutes:?}");
    assert!(entered > 0, "{minutes:?}");
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_it_keeps_the_order_of_the_queue() {
    let mut stage = Stage::open(limits(SEATS, PLENTY), "2s").await;
    let queue = GroupQueue::at(&stage.address, &stage.origin).await;
    keeps_order_over(&mut stage, queue, async |stage| stage.kill().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_it_keeps_the_order_of_the_queue() {
    let mut stage = Stage::open(limits(SEATS, PLENTY), "2s").await;
    let queue = GroupQueue::at(&stage.address, &stage.origin).await;
    keeps_order_over(&mut stage, queue, async |stage| stage.terminate().await).await;
}

async fn keeps_order_over(
    stage: &mut Stage,
    mut queue: GroupQueue,
    end: impl AsyncFnOnce(&mut Stage),
) {
    for group in ["/group-1", "/group-2"] {
        queue.join(group, stage.gateway().admin).await;
    }
    end(stage).await;
    stage.start().await;
    queue.add("/newcomers");
    queue.open().await;
    queue.assert_all_in_order(&stage.origin).await;
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_exactly_the_granted_seats_are_known() {
    let mut stage = Stage::open(limits(20, PLENTY), "10s").await;
    let endless = stage.fill(8).await;
    for _ in 0..2 {
        stage.terminate().await;
        stage.start().await;
        let operator = stage.operator();
        let knows = async || operator.shows("anteroom_seats_active", 8.0).await;
        eventually("it knows the active visitors", knows).await;
        assert!(operator.shows("anteroom_seats_phantom", 0.0).await);
        let pages = endless.counters().pages;
        let passes = async || endless.counters().pages >= pages + 16;
        eventually("active visitors pass", passes).await;
    }
    // The twelve free seats can be taken at once.
    let load = visitors::send(&stage.address, 40, &endless_visits());
    // The origin sees a visitor before the visitor sees its page.
    let all_are_in = async || stage.origin.inside() == 20 && load.counters().entered >= 12;
    eventually("all seats are taken", all_are_in).await;
    visitors::stop_endless(endless, 8).await;
    visitors::stop_endless(load, 12).await;
    stage.assert_within_limits();
}
