//! Overrides: in effect at every node within a second, with few requests to stores.

use std::time::Duration;

use anteroom_config::overrides::{Actor, OperatorCommand};
use anteroom_node::{CommandOutcome, Outcome, RoomCommandError};
use anteroom_room::queue_position::QueueReason;
use anteroom_room::time::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::deployment::{Deployment, let_pass, request};
use super::{Rules, SMALL};

/// Performs a command at the first node.
async fn command(deployment: &Deployment, command: OperatorCommand) {
    let room = deployment.room(0);
    room.execute(&command, &Actor::default()).await.unwrap();
}

fn pause() -> OperatorCommand {
    OperatorCommand::Pause {
        message: Some("Back at ten".to_owned()),
    }
}

fn set(key: &str, value: impl Into<serde_json::Value>) -> OperatorCommand {
    OperatorCommand::Set([(key.to_owned(), value.into())].into())
}

fn reason(outcome: &Outcome) -> Option<QueueReason> {
    match outcome {
        Outcome::Queue { position, .. } => Some(position.reason),
        Outcome::Pass(_) | Outcome::MayCome => None,
    }
}

/// Returns deployments of one level and of two levels, with three nodes each.
async fn both() -> [Deployment; 2] {
    [
        Deployment::one_level(3, SMALL).await,
        Deployment::two_levels(3, 1, SMALL).await,
    ]
}

#[tokio::test(start_paused = true)]
async fn a_long_idle_node_admits_nobody_after_a_pause() {
    for deployment in both().await {
        let_pass(Duration::from_secs(60)).await;
        command(&deployment, pause()).await;
        let_pass(Duration::from_millis(1_001)).await;
        for node in 0..3 {
            let room = deployment.room(node);
            let began = Instant::now();
            let outcome = request(&room, None).await;
            assert_eq!(reason(&outcome), Some(QueueReason::QueueAll), "node {node}");
            assert_eq!(room.overrides().message(), Some("Back at ten"));
            assert!(began.elapsed() <= Duration::from_millis(250));
        }
        command(&deployment, OperatorCommand::Resume).await;
        let_pass(Duration::from_millis(1_001)).await;
        for node in 0..3 {
            let outcome = request(&deployment.room(node), None).await;
            assert_ne!(reason(&outcome), Some(QueueReason::QueueAll), "node {node}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_its_turn_is_answered_when_the_room_is_suspended() {
    let rules = Rules {
        seats: 1,
        session_s: 60,
        ..SMALL
    };
    let deployment = Deployment::one_level(1, rules).await;
    let room = deployment.room(0);
    assert_eq!(reason(&request(&room, None).await), None);
    let mut cookie = None;
    for pause in [1, 15] {
        let outcome = request(&room, cookie.as_deref()).await;
        let Outcome::Queue { ticket, .. } = outcome else {
            panic!("the room is full");
        };
        cookie = ticket;
        let_pass(Duration::from_secs(pause)).await;
    }
    let began = Instant::now();
    let suspends = async {
        let_pass(Duration::from_secs(2)).await;
        command(&deployment, set("suspended", true)).await;
    };
    let (outcome, ()) = tokio::join!(request(&room, cookie.as_deref()), suspends);
    assert_eq!(reason(&outcome), Some(QueueReason::Full));
    let took = began.elapsed();
    assert!((2..=4).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_node_reads_overrides_within_a_second_without_a_request() {
    let rules = Rules {
        seats: 1_000,
        ..SMALL
    };
    let deployment = Deployment::one_level(3, rules).await;
    for round in 0..10 {
        for node in 0..3 {
            assert_eq!(reason(&request(&deployment.room(node), None).await), None);
        }
        // At another moment within the second each time.
        let_pass(Duration::from_millis(500 + 90 * round)).await;
        command(&deployment, pause()).await;
        let_pass(Duration::from_millis(1_005)).await;
        for node in 0..3 {
            // No request triggers the read, so no visitor waits for it.
            assert!(
                deployment.room(node).overrides().pause.is_some(),
                "node {node}"
            );
        }
        command(&deployment, OperatorCommand::Resume).await;
        let_pass(Duration::from_millis(1_005)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_room_reads_four_times_in_three_seconds_an_idle_never() {
    let deployment = Deployment::two_levels(2, 3, SMALL).await;
    let_pass(Duration::from_secs(60)).await;
    let reads = || -> Vec<u64> {
        (0..6)
            .map(|node| deployment.room(node).override_reads())
            .collect()
    };
    let before = reads();
    let_pass(Duration::from_secs(60)).await;
    assert_eq!(reads(), before, "an idle room reads nothing");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        for node in 0..6 {
            request(&deployment.room(node), None).await;
        }
        let_pass(Duration::from_millis(20)).await;
    }
    let secs = began.elapsed().as_secs();
    for (before, after) in before.into_iter().zip(reads()) {
        let count = after - before;
        println!("{count} reads in {secs} s");
        assert!(
            (60..=secs * 4 / 3 + 1).contains(&count),
            "{count} in {secs} s"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_raised_limit_reaches_all_nodes_even_empty_ones() {
    let rules = Rules { seats: 2, ..SMALL };
    for (deployment, most) in [
        // A node syncs within three seconds, and then requests a grant.
        (Deployment::one_level(3, rules).await, 4),
        // An idle data center syncs with the root every ten seconds.
        (Deployment::two_levels(2, 2, rules).await, 14),
    ] {
        let began = Instant::now();
        let mut inside = 0;
        for _ in 0..4 {
            inside += u32::from(reason(&request(&deployment.room(0), None).await).is_none());
        }
        assert_eq!(inside, 2);
        // All nodes learn of the active visitors: an idle data center syncs with the root every ten
        // seconds, and its nodes sync with it every three.
        let nodes = deployment.nodes.len();
        while !(0..nodes).all(|node| deployment.room(node).stats().snapshot.active == 2) {
            let_pass(Duration::from_millis(100)).await;
            assert!(
                began.elapsed() < Duration::from_secs(15),
                "some nodes do not learn of the active visitors"
            );
        }
        command(&deployment, set("total_active_users", 4)).await;
        let commanded_at = Instant::now();
        let mut more = 0;
        while more < 2 {
            let outcome = request(&deployment.room(0), None).await;
            more += u32::from(reason(&outcome).is_none());
            let_pass(Duration::from_millis(100)).await;
            assert!(
                commanded_at.elapsed() < Duration::from_secs(most),
                "it takes too long"
            );
        }
        let took = commanded_at.elapsed();
        println!("{nodes} nodes agreed within {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_starting_node_reads_the_overrides_before_it_admits_visitors() {
    for mut deployment in both().await {
        command(&deployment, pause()).await;
        deployment.start(0);
        let room = deployment.room(3);
        for _ in 0..20 {
            let outcome = request(&room, None).await;
            let reason = reason(&outcome);
            assert!(
                matches!(
                    reason,
                    Some(QueueReason::QueueAll | QueueReason::StoreUnavailable)
                ),
                "{reason:?}"
            );
            let_pass(Duration::from_millis(100)).await;
        }
        assert_eq!(room.overrides().version, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_data_center_has_the_overrides_of_its_copy() {
    let mut deployment = Deployment::two_levels(2, 1, SMALL).await;
    command(&deployment, pause()).await;
    // A visitor makes the other data center read the overrides.
    request(&deployment.room(1), None).await;
    let_pass(Duration::from_secs(1)).await;
    deployment.root.set_unavailable(true);
    for data_center in 0..2 {
        deployment.start(data_center);
    }
    let_pass(Duration::from_secs(5)).await;
    for node in 2..4 {
        let room = deployment.room(node);
        assert_eq!(
            reason(&request(&room, None).await),
            Some(QueueReason::QueueAll)
        );
        assert!(
            room.execute(&OperatorCommand::Resume, &Actor::default())
                .await
                .is_err()
        );
        assert!(
            room.overrides().pause.is_some(),
            "a command that was not written has no effect"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_gets_no_more_reads_whatever_the_traffic() {
    for deployment in both().await {
        for node in 0..3 {
            request(&deployment.room(node), None).await;
        }
        deployment.root.set_unavailable(true);
        let before = deployment.room(1).override_reads();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(30) {
            request(&deployment.room(1), None).await;
            let_pass(Duration::from_millis(20)).await;
        }
        let count = deployment.room(1).override_reads() - before;
        // One in 750 ms, and one for the first visitor after the last reply grew old.
        assert!((20..=43).contains(&count), "{count} reads in 30 s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_whose_read_failed_learns_of_a_later_pause() {
    for deployment in both().await {
        let_pass(Duration::from_secs(60)).await;
        deployment.root.set_unavailable(true);
        // The read fails, and no visitor comes afterwards.
        request(&deployment.room(1), None).await;
        let_pass(Duration::from_secs(600)).await;
        deployment.root.set_unavailable(false);
        let_pass(Duration::from_secs(5)).await;
        command(&deployment, pause()).await;
        let_pass(Duration::from_millis(1_001)).await;
        let outcome = request(&deployment.room(1), None).await;
        assert_eq!(reason(&outcome), Some(QueueReason::QueueAll));
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_after_a_loss_wins_over_lost_overrides() {
    let mut deployment = Deployment::one_level(2, SMALL).await;
    for seats in [7, 8, 9] {
        command(&deployment, set("total_active_users", seats)).await;
    }
    deployment.root.wipe();
    // A node without the lost overrides performs a command before another node restores them.
    deployment.start(0);
    let newcomer = deployment.room(2);
    let_pass(Duration::from_millis(1)).await;
    let at_start = newcomer.overrides().version;
    newcomer.execute(&pause(), &Actor::default()).await.unwrap();
    for _ in 0..30 {
        for node in 0..3 {
            request(&deployment.room(node), None).await;
        }
        let_pass(Duration::from_millis(100)).await;
    }
    assert_eq!(at_start, 0, "it has started on the empty store");
    for node in 0..3 {
        let overrides = deployment.room(node).overrides();
        assert!(overrides.pause.is_some(), "node {node} has {overrides:?}");
        assert_eq!(overrides.version, 1, "node {node}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_overrides_are_restored_to_the_store() {
    let deployment = Deployment::one_level(2, SMALL).await;
    command(&deployment, set("total_active_users", 7)).await;
    command(&deployment, pause()).await;
    request(&deployment.room(1), None).await;
    deployment.root.wipe();
    let_pass(Duration::from_secs(2)).await;
    request(&deployment.room(1), None).await;
    let_pass(Duration::from_secs(2)).await;
    command(&deployment, OperatorCommand::Resume).await;
    let overrides = deployment.room(0).overrides();
    assert_eq!((overrides.version, overrides.pause.is_some()), (3, false));
    assert_eq!(overrides.values["total_active_users"], 7);
    let log = deployment.room(1).override_log().await.unwrap();
    let commands: Vec<&str> = log
        .entries
        .iter()
        .map(|entry| entry.what.as_str())
        .collect();
    assert_eq!(commands, ["pause --message \"Back at ten\"", "resume"]);
}

#[tokio::test(start_paused = true)]
async fn overrides_lost_by_the_root_while_all_nodes_were_down_are_restored() {
    let mut deployment = Deployment::two_levels(2, 1, SMALL).await;
    command(&deployment, pause()).await;
    let_pass(Duration::from_secs(1)).await;
    deployment.stop_all().await;
    deployment.root.wipe();
    // The second data center has no copy.
    deployment.locals[1].wipe();
    deployment.start(0);
    let_pass(Duration::from_secs(2)).await;
    deployment.start(1);
    let_pass(Duration::from_secs(2)).await;
    for node in 0..2 {
        let room = deployment.room(node);
        request(&room, None).await;
        let overrides = room.overrides();
        assert!(overrides.pause.is_some(), "node {node} has {overrides:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_opening_time_is_moved_and_ended_while_visitors_wait() {
    let deployment = Deployment::one_level(2, SMALL).await;
    let now = deployment.room(0).wall_now();
    let at = anteroom_config::time_text::rfc3339_millis(Timestamp(now.0 + 60_000));
    command(&deployment, set("opens_at", at)).await;
    let_pass(Duration::from_secs(1)).await;
    let opens = |outcome: &Outcome| match reason(outcome) {
        Some(QueueReason::NotOpenYet { opens_at }) => opens_at.0.saturating_sub(now.0),
        other => panic!("{other:?}"),
    };
    for node in 0..2 {
        assert_eq!(opens(&request(&deployment.room(node), None).await), 60_000);
    }
    let at = anteroom_config::time_text::rfc3339_millis(Timestamp(now.0 + 5_000));
    command(&deployment, set("opens_at", at)).await;
    let_pass(Duration::from_millis(1_010)).await;
    assert_eq!(opens(&request(&deployment.room(1), None).await), 5_000);
    let_pass(Duration::from_secs(4)).await;
    assert_eq!(reason(&request(&deployment.room(1), None).await), None);

    let at = anteroom_config::time_text::rfc3339_millis(Timestamp(now.0 + 3_600_000));
    command(&deployment, set("opens_at", at)).await;
    let_pass(Duration::from_millis(1_010)).await;
    assert!(reason(&request(&deployment.room(1), None).await).is_some());
    command(&deployment, OperatorCommand::Open).await;
    let_pass(Duration::from_millis(1_010)).await;
    assert_eq!(reason(&request(&deployment.room(1), None).await), None);
    let values = deployment.room(1).shown();
    assert_eq!(values.values["queue_all"].value, json!(false));
}

/// Returns why a visitor waits at each node; `None` = admitted.
async fn reasons(deployment: &Deployment) -> Vec<Option<QueueReason>> {
    let mut reasons = Vec::new();
    for node in 0..deployment.nodes.len() {
        reasons.push(reason(&request(&deployment.room(node), None).await));
    }
    reasons
}

async fn commands(deployment: &Deployment, node: usize) -> Vec<String> {
    let log = deployment.room(node).override_log().await.unwrap();
    log.entries.into_iter().map(|entry| entry.what).collect()
}

const HELD: Option<QueueReason> = Some(QueueReason::QueueAll);

#[tokio::test(start_paused = true)]
async fn a_stop_is_in_effect_while_the_store_is_unavailable() {
    for deployment in both().await {
        for stop in [pause(), OperatorCommand::QueueAll] {
            deployment.root.set_unavailable(true);
            let room = deployment.room(0);
            let began = Instant::now();
            let obeyed = room.execute(&stop, &Actor::default()).await.unwrap();
            assert_eq!(obeyed, CommandOutcome::Held { is_kept: false });
            assert!(began.elapsed() < Duration::from_secs(3));
            assert_eq!(reason(&request(&room, None).await), HELD);
            assert_eq!(room.shown().held[0].command, stop.to_text());
            // Other nodes could still admit visitors from their leases.
            deployment.root.set_unavailable(false);
            let_pass(Duration::from_secs(5)).await;
            assert_eq!(reasons(&deployment).await, [HELD; 3], "{stop:?}");
            assert!(room.shown().held.is_empty());
            assert_eq!(commands(&deployment, 1).await.last(), Some(&stop.to_text()));
            command(&deployment, OperatorCommand::Open).await;
            let_pass(Duration::from_secs(2)).await;
            assert_eq!(reasons(&deployment).await, [None; 3]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_pause_stops_a_room_that_admits_without_its_store() {
    let rules = Rules {
        more: "on_store_failure = \"admit\"",
        ..SMALL
    };
    let deployment = Deployment::one_level(1, rules).await;
    let room = deployment.room(0);
    deployment.root.set_unavailable(true);
    let_pass(Duration::from_secs(60)).await;
    assert_eq!(reason(&request(&room, None).await), None);
    room.execute(&pause(), &Actor::default()).await.unwrap();
    assert_eq!(reason(&request(&room, None).await), HELD);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_admitted_after_a_stop_while_the_store_is_slow() {
    let deployment = Deployment::one_level(1, SMALL).await;
    let room = deployment.room(0);
    deployment.root.set_unavailable(true);
    let handle = room.clone();
    let obeying = tokio::spawn(async move { handle.execute(&pause(), &Actor::default()).await });
    tokio::task::yield_now().await;
    while !obeying.is_finished() {
        assert_eq!(reason(&request(&room, None).await), HELD);
        let_pass(Duration::from_millis(10)).await;
    }
    obeying.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_held_stop_gives_way_only_to_a_later_command() {
    for is_later in [true, false] {
        let deployment = Deployment::two_levels(2, 1, SMALL).await;
        let (cut_off, other) = (deployment.room(0), deployment.room(1));
        command(&deployment, pause()).await;
        let_pass(Duration::from_secs(2)).await;
        if !is_later {
            other
                .execute(&OperatorCommand::Resume, &Actor::default())
                .await
                .unwrap();
            let_pass(Duration::from_secs(1)).await;
        }
        deployment.root.set_unavailable(true);
        let again = OperatorCommand::Pause { message: None };
        cut_off.execute(&again, &Actor::default()).await.unwrap();
        deployment.root.set_unavailable(false);
        if is_later {
            other
                .execute(&OperatorCommand::Resume, &Actor::default())
                .await
                .unwrap();
        }
        let_pass(Duration::from_secs(5)).await;
        let expected = if is_later { None } else { HELD };
        assert_eq!(reasons(&deployment).await, [expected; 2], "{is_later}");
        assert!(cut_off.shown().held.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_command_about_another_subject_keeps_a_held_stop() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let room = deployment.room(0);
    deployment.root.set_unavailable(true);
    room.execute(&pause(), &Actor::default()).await.unwrap();
    deployment.root.set_unavailable(false);
    let set = set("total_active_users", 7);
    deployment
        .room(1)
        .execute(&set, &Actor::default())
        .await
        .unwrap();
    let_pass(Duration::from_secs(5)).await;
    assert_eq!(reasons(&deployment).await, [HELD; 2]);
    let overrides = deployment.room(1).overrides();
    assert_eq!(
        (overrides.version, &overrides.values["total_active_users"]),
        (2, &7.into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_resume_without_the_store_ends_only_this_nodes_stop() {
    let deployment = Deployment::one_level(1, SMALL).await;
    let room = deployment.room(0);
    let who = Actor::default();
    let stray = room.execute_here(&OperatorCommand::Resume, &who).await;
    assert!(matches!(stray, Err(RoomCommandError::NotHere)));
    deployment.root.set_unavailable(true);
    assert!(room.execute(&OperatorCommand::Resume, &who).await.is_err());
    room.execute(&pause(), &who).await.unwrap();
    let ended = room.execute(&OperatorCommand::Resume, &who).await.unwrap();
    assert_eq!(ended, CommandOutcome::Ended);
    assert!(room.overrides().pause.is_none() && room.shown().held.is_empty());
    deployment.root.set_unavailable(false);
    let_pass(Duration::from_secs(5)).await;
    assert_eq!(reasons(&deployment).await, [None]);
    // A node cannot end a pause that is in the store.
    command(&deployment, pause()).await;
    deployment.root.set_unavailable(true);
    room.execute(&OperatorCommand::Pause { message: None }, &who)
        .await
        .unwrap();
    assert_eq!(
        room.execute(&OperatorCommand::Resume, &who).await.unwrap(),
        CommandOutcome::Ended
    );
    assert!(room.overrides().pause.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_stop_for_this_node_takes_effect_before_it_is_stored() {
    let deployment = Deployment::one_level(2, SMALL).await;
    let requests = deployment.requests();
    let room = deployment.room(0);
    let obeyed = room
        .execute_here(&pause(), &Actor::default())
        .await
        .unwrap();
    assert_eq!(obeyed, CommandOutcome::Held { is_kept: false });
    assert_eq!(deployment.requests(), requests);
    assert!(room.overrides().pause.is_some());
    let_pass(Duration::from_secs(2)).await;
    assert_eq!(reasons(&deployment).await, [HELD; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_held_stop_survives_a_restart_of_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let mut deployment = Deployment::one_level(0, SMALL).await;
    deployment.start_in(0, Some(folder.path().to_path_buf()));
    deployment.root.set_unavailable(true);
    let obeyed = deployment
        .room(0)
        .execute_here(&pause(), &Actor::default())
        .await;
    assert_eq!(obeyed.unwrap(), CommandOutcome::Held { is_kept: true });
    deployment.stop_all().await;
    deployment.start_in(0, Some(folder.path().to_path_buf()));
    let room = deployment.room(0);
    assert!(room.overrides().pause.is_some());
    assert!(room.shown().held[0].is_kept);
}

#[tokio::test(start_paused = true)]
async fn during_a_replacement_both_processes_share_held_stops() {
    let folder = tempfile::tempdir().unwrap();
    let mut deployment = Deployment::one_level(0, SMALL).await;
    for _ in 0..2 {
        deployment.start_in(0, Some(folder.path().to_path_buf()));
    }
    deployment.root.set_unavailable(true);
    let (old, new) = (deployment.room(0), deployment.room(1));
    let obeyed = old.execute_here(&pause(), &Actor::default()).await.unwrap();
    assert_eq!(obeyed, CommandOutcome::Held { is_kept: true });
    // Each process checks once a second for changes of the other.
    let_pass(Duration::from_secs(2)).await;
    assert!(new.overrides().pause.is_some(), "the successor obeys");
    let ended = new
        .execute_here(&OperatorCommand::Resume, &Actor::default())
        .await;
    assert_eq!(ended.unwrap(), CommandOutcome::Ended);
    let_pass(Duration::from_secs(2)).await;
    assert!(old.overrides().pause.is_none(), "the predecessor obeys");
}
