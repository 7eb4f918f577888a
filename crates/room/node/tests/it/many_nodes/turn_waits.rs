//! Polls that wait for the turn of their visitor: one for each visitor, and none of a client that
//! has hung up.

use std::time::Duration;

use anteroom_node::{Arrival, Outcome, RoomHandle};
use anteroom_room::room::request_flow::Intent;
use anteroom_room::time::DurationMs;
use tokio::time::{Instant, timeout};

use super::deployment::{Deployment, let_pass, request};
use super::{Rules, SMALL};

async fn long_poll(room: &RoomHandle, cookie: &str) -> (String, Option<DurationMs>) {
    let outcome = room
        .decide(Arrival {
            tickets: &[cookie],
            is_navigation: false,
            gets_page: false,
            intent: Intent::LongPoll,
        })
        .await;
    let Outcome::Queue {
        ticket: Some(ticket),
        position,
        ..
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    (ticket, position.refresh_after)
}

/// Returns a full room, and the ticket of the visitor who is first in line.
async fn first_in_line() -> (Deployment, String) {
    let rules = Rules {
        seats: 1,
        session_s: 600,
        ..SMALL
    };
    let deployment = Deployment::one_level(1, rules).await;
    let room = deployment.room(0);
    request(&room, None).await;
    let Outcome::Queue { ticket, .. } = request(&room, None).await else {
        panic!("the room is full");
    };
    let_pass(Duration::from_secs(1)).await;
    (deployment, ticket.unwrap())
}

#[tokio::test(start_paused = true)]
async fn of_all_tickets_of_a_visitor_one_waits() {
    let (deployment, cookie) = first_in_line().await;
    let room = deployment.room(0);
    let others = async {
        let_pass(Duration::from_millis(100)).await;
        let mut newest = cookie.clone();
        // Each of them carries the ticket of the one before.
        for _ in 0..5 {
            let began = Instant::now();
            let (next, refresh_after) = long_poll(&room, &newest).await;
            assert!(began.elapsed() < Duration::from_millis(100));
            assert!(refresh_after > Some(DurationMs::ZERO));
            newest = next;
            let_pass(Duration::from_millis(100)).await;
        }
    };
    let (waited, ()) = tokio::join!(long_poll(&room, &cookie), others);
    assert_eq!(waited.1, Some(DurationMs::ZERO));
    let began = Instant::now();
    long_poll(&room, &waited.0).await;
    assert!(
        began.elapsed() >= Duration::from_secs(9),
        "the next one waits"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hung_up_waits_again_and_does_not_count_meanwhile() {
    let (deployment, cookie) = first_in_line().await;
    let room = deployment.room(0);
    for _ in 0..3 {
        let hung_up = timeout(Duration::from_secs(3), long_poll(&room, &cookie)).await;
        assert!(hung_up.is_err(), "it waits");
        let_pass(Duration::from_millis(600)).await;
        assert_eq!(room.stats().people_waiting, 0);
    }
    let (_, refresh_after) = long_poll(&room, &cookie).await;
    assert_eq!(refresh_after, Some(DurationMs::ZERO));
}
