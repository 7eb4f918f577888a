//! Scheduled events: they begin and end at every node, and never go back.

use std::sync::Arc;
use std::time::Duration;

use anteroom_node::Outcome;
use anteroom_room::queue_position::QueueReason;
use anteroom_room::time::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::deployment::{Checker, Deployment, let_pass, request};
use super::{Rules, SMALL, run_visitors};

/// A sale of five minutes, a quarter of an hour after the start of the deployment.
const SALE: Rules = Rules {
    more: "[[room.event]]\nname = \"sale\"\nprequeue_start_time = \"2023-09-11T11:50:00Z\"\n\
           event_start_time = \"2023-09-11T12:00:00Z\"\nevent_end_time = \"2023-09-11T12:05:00Z\"\n\
           total_active_users = 5\nnew_users_per_minute = 1000\n",
    ..SMALL
};
/// Such a sale in a room that otherwise lets everybody pass.
const SALE_IN_AN_OPEN_ROOM: Rules = Rules {
    more: "queueing_method = \"passthrough\"\n[[room.event]]\nname = \"sale\"\n\
           prequeue_start_time = \"2023-09-11T11:50:00Z\"\n\
           event_start_time = \"2023-09-11T12:00:00Z\"\nevent_end_time = \"2023-09-11T12:05:00Z\"\n\
           queueing_method = \"fifo\"\ntotal_active_users = 5\nnew_users_per_minute = 1000\n",
    session_s: 5,
    ..SMALL
};
/// A draw in such a room, with the room's own limits and method.
const DRAW_IN_AN_OPEN_ROOM: Rules = Rules {
    more: "queueing_method = \"passthrough\"\n[[room.event]]\nname = \"sale\"\n\
           prequeue_start_time = \"2023-09-11T11:50:00Z\"\n\
           event_start_time = \"2023-09-11T12:00:00Z\"\nshuffle_at_event_start = true\n",
    seats: 5,
    session_s: 5,
    ..SMALL
};
const PREQUEUE: Timestamp = Timestamp(1_694_433_000_000);
const START: Timestamp = Timestamp(1_694_433_600_000);
const END: Timestamp = Timestamp(1_694_433_900_000);

/// Starts three nodes on one store, or with a store of their own each. Time passes for all
/// deployments alike, so there is one at a time.
async fn three_nodes(has_levels: bool, rules: Rules) -> Deployment {
    if has_levels {
        Deployment::two_levels(3, 1, rules).await
    } else {
        Deployment::one_level(3, rules).await
    }
}

/// Waits until `ms` after `at`, by the wall clock.
async fn until(deployment: &Deployment, at: Timestamp, ms: u64) {
    let now = deployment.room(0).wall_now();
    let until = Timestamp(at.0 + ms);
    let_pass(Duration::from_millis(until.since(now).0)).await;
}

/// Returns the opening that a new visitor waits for at each node; `None` if there is none.
async fn openings(deployment: &Deployment) -> Vec<Option<Timestamp>> {
    let mut openings = Vec::new();
    for node in 0..deployment.nodes.len() {
        let outcome = request(&deployment.room(node), None).await;
        openings.push(match outcome {
            Outcome::Queue { position, .. } => match position.reason {
                QueueReason::NotOpenYet { opens_at } => Some(opens_at),
                _ => None,
            },
            Outcome::Pass(_) | Outcome::MayCome => None,
        });
    }
    openings
}

fn limits(deployment: &Deployment) -> Vec<u32> {
    let rooms = (0..deployment.nodes.len()).map(|node| deployment.room(node));
    let limits = rooms.map(|room| room.config().rules.limits.total_active_users);
    limits.collect()
}

async fn phases(deployment: &Deployment) -> Vec<String> {
    let log = deployment.room(0).override_log().await.unwrap();
    log.entries.into_iter().map(|entry| entry.what).collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_begins_and_ends_at_all_nodes() {
    for has_levels in [false, true] {
        let deployment = three_nodes(has_levels, SALE).await;
        until(&deployment, PREQUEUE, 0).await;
        let_pass(Duration::from_millis(2)).await;
        assert_eq!(openings(&deployment).await, [Some(START); 3]);
        assert_eq!(limits(&deployment), [5; 3]);
        until(&deployment, START, 2).await;
        assert_eq!(openings(&deployment).await, [None; 3]);
        assert_eq!(limits(&deployment), [5; 3]);
        let checker = run_visitors(&deployment, 30, Duration::from_secs(20)).await;
        assert!(checker.inside_max <= 5, "{} inside", checker.inside_max);
        until(&deployment, END, 2).await;
        assert_eq!(limits(&deployment), [20; 3]);
        let_pass(Duration::from_secs(3)).await;
        let expected = [
            "event sale: prequeue",
            "event sale: running",
            "event sale: over",
        ];
        assert_eq!(phases(&deployment).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn visitors_who_gather_enter_at_the_start_within_the_limits() {
    let deployment = Deployment::two_levels(2, 2, SALE).await;
    until(&deployment, Timestamp(START.0 - 30_000), 0).await;
    let gathering = crowd(&deployment, 10).await;
    assert!(gathering.inside_max <= 5, "{} inside", gathering.inside_max);
    assert_eq!(gathering.admitted_total, 10);
}

#[tokio::test(start_paused = true)]
async fn a_started_event_stays_started_when_clocks_step_back() {
    for has_levels in [false, true] {
        let mut deployment = three_nodes(has_levels, SALE).await;
        until(&deployment, START, 2_000).await;
        deployment.clock.step_wall(-7_200_000);
        let_pass(Duration::from_secs(3)).await;
        assert_eq!(openings(&deployment).await, [None; 3]);
        assert_eq!(limits(&deployment), [5; 3]);
        // A process that has seen nothing of it learns it from the store.
        deployment.stop_all().await;
        for node in 0..3 {
            deployment.start(if has_levels { node } else { 0 });
        }
        let_pass(Duration::from_secs(3)).await;
        assert_eq!(openings(&deployment).await, [None; 3]);
        assert_eq!(limits(&deployment), [5; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_steps_in_the_prequeue_moves_the_start() {
    for step_ms in [-60_000, 60_000] {
        let deployment = Deployment::one_level(2, SALE).await;
        until(&deployment, PREQUEUE, 120_000).await;
        deployment.clock.step_wall(step_ms);
        let_pass(Duration::from_millis(1_010)).await;
        assert_eq!(openings(&deployment).await, [Some(START); 2], "{step_ms}");
        let before = Timestamp(START.0 - 20);
        until(&deployment, before, 0).await;
        assert_eq!(openings(&deployment).await, [Some(START); 2], "{step_ms}");
        until(&deployment, START, 20).await;
        assert_eq!(openings(&deployment).await, [None; 2], "{step_ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_nobody_was_there_for_takes_place_with_the_first_node() {
    let mut deployment = Deployment::one_level(1, SALE).await;
    until(&deployment, PREQUEUE, 1_000).await;
    deployment.stop_all().await;
    let_pass(Duration::from_secs(660)).await;
    deployment.start(0);
    let_pass(Duration::from_secs(3)).await;
    assert_eq!(openings(&deployment).await, [None]);
    assert_eq!(limits(&deployment), [5]);
    let expected = ["event sale: prequeue", "event sale: running"];
    assert_eq!(phases(&deployment).await, expected);
}

/// Time after which everybody passes if nobody has waited in it.
const QUIET: Duration = Duration::from_secs(70);

/// Simulates visitors who come at once, ask each second until they are admitted, and leave then.
async fn crowd(deployment: &Deployment, people: usize) -> Checker {
    patient_crowd(deployment, people, Duration::from_millis(900)).await
}

/// Simulates visitors like [`crowd`], who ask after this time.
async fn patient_crowd(deployment: &Deployment, people: usize, pause: Duration) -> Checker {
    let checker = Arc::new(Mutex::new(Checker::default()));
    let visitors = (0..people).map(|visitor| {
        let room = deployment.room(visitor % deployment.nodes.len());
        let (checker, clock) = (Arc::clone(&checker), Arc::clone(&deployment.clock));
        tokio::spawn(async move {
            let mut cookie = None;
            loop {
                let outcome = request(&room, cookie.as_deref()).await;
                let is_in = matches!(outcome, Outcome::Pass(_));
                let now = anteroom_store::Clock::now(&*clock);
                cookie = checker.lock().note(outcome, cookie, now);
                if is_in {
                    break;
                }
                let_pass(pause + Duration::from_millis(visitor as u64 % 200)).await;
            }
        })
    });
    for visitor in visitors.collect::<Vec<_>>() {
        visitor.await.unwrap();
    }
    Arc::into_inner(checker).unwrap().into_inner()
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_at_the_end_enter_under_the_limits_of_the_event() {
    for has_levels in [false, true] {
        let deployment = three_nodes(has_levels, SALE_IN_AN_OPEN_ROOM).await;
        until(&deployment, Timestamp(END.0 - 5_000), 0).await;
        let began = Instant::now();
        let checker = crowd(&deployment, 40).await;
        assert_eq!(checker.admitted_total, 40);
        assert!(checker.inside_max <= 5, "{} inside", checker.inside_max);
        assert!(
            began.elapsed() > Duration::from_secs(20),
            "the end was no stampede"
        );
        // Nobody waits any more, so everybody passes.
        let_pass(QUIET).await;
        let checker = crowd(&deployment, 40).await;
        assert_eq!(checker.inside_max, 40);
    }
}

/// A page asks every 30 seconds if its browser runs no script.
#[tokio::test(start_paused = true)]
async fn those_who_came_just_before_the_end_or_ask_seldom_are_no_stampede() {
    for (before_ms, pause_ms) in [
        (300, 2_000),
        (1_200, 2_000),
        (2_500, 2_000),
        (5_000, 30_000),
    ] {
        let deployment = three_nodes(true, SALE_IN_AN_OPEN_ROOM).await;
        until(&deployment, Timestamp(END.0 - before_ms), 0).await;
        let checker = patient_crowd(&deployment, 25, Duration::from_millis(pause_ms)).await;
        assert_eq!(checker.admitted_total, 25);
        assert!(
            checker.inside_max <= 5,
            "{} inside, {before_ms} ms",
            checker.inside_max
        );
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_gather_in_an_open_room_enter_under_its_limits() {
    // Room time may be a little behind the wall clock.
    for wall_ahead_ms in [0, 50, 450] {
        let deployment = three_nodes(false, DRAW_IN_AN_OPEN_ROOM).await;
        deployment.clock.step_wall(wall_ahead_ms);
        until(&deployment, Timestamp(START.0 - 60_000), 0).await;
        let checker = crowd(&deployment, 40).await;
        assert_eq!(checker.admitted_total, 40);
        assert!(checker.inside_max <= 5, "{} inside", checker.inside_max);
        let_pass(QUIET).await;
        assert_eq!(crowd(&deployment, 40).await.inside_max, 40);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_after_the_end_is_no_stampede() {
    let mut deployment = Deployment::one_level(1, SALE_IN_AN_OPEN_ROOM).await;
    until(&deployment, END, 0).await;
    let_pass(QUIET).await;
    deployment.stop_all().await;
    deployment.start(0);
    let_pass(Duration::from_secs(1)).await;
    // Nobody waited at the end, and the store knows it.
    assert_eq!(crowd(&deployment, 40).await.inside_max, 40);

    let mut deployment = Deployment::one_level(1, SALE_IN_AN_OPEN_ROOM).await;
    until(&deployment, Timestamp(END.0 - 3_000), 0).await;
    until(&deployment, Timestamp(END.0 + 1_000), 0).await;
    deployment.stop_all().await;
    deployment.start(0);
    let_pass(Duration::from_secs(8)).await;
    let checker = crowd(&deployment, 40).await;
    assert!(checker.inside_max <= 5, "{} inside", checker.inside_max);
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_wrong_for_a_while_ends_no_event() {
    let deployment = three_nodes(true, SALE).await;
    until(&deployment, START, 2_000).await;
    assert_eq!(limits(&deployment), [5; 3]);
    deployment.clock.step_wall(86_400_000);
    let_pass(Duration::from_secs(5)).await;
    assert_eq!(limits(&deployment), [20; 3]);
    deployment.clock.step_wall(-86_400_000);
    let_pass(Duration::from_secs(5)).await;
    assert_eq!(limits(&deployment), [5; 3]);
    let expected = ["event sale: prequeue", "event sale: running"];
    assert_eq!(phases(&deployment).await, expected);
}

#[tokio::test(start_paused = true)]
async fn idle_nodes_read_a_phase_of_another_node_once() {
    let mut requests = Vec::new();
    for rules in [SMALL, SALE] {
        let deployment = three_nodes(false, rules).await;
        until(&deployment, START, 60_000).await;
        let (_, before) = deployment.requests();
        let_pass(Duration::from_secs(60)).await;
        let (_, after) = deployment.requests();
        requests.push(after - before);
    }
    assert!(
        requests[1] <= requests[0] + 3,
        "{requests:?} without and with an event"
    );
}
