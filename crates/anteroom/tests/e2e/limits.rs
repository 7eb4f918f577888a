//! Are the limits kept, exactly, while far more visitors come than there is room for?
//!
//! Counted by the origin alone. How long anything takes is not asserted, and of the fill only that
//! it is not poor: it depends on the machine.

mod fast_minute;
mod order;
mod rush;

use std::time::Duration;

use anteroom::demo::judging::CheckerClock;
use anteroom_room::rules::Limits;
use tokio::time::{Instant, interval};

use self::rush::rush;
use crate::support::crowd::{Habits, LoadGenerator};
use crate::support::process::Gateway;
use crate::support::stage::{Stage, judging};
use crate::support::{eventually, now};

/// A rate that is never the one that holds visitors back.
pub(crate) const PLENTY: u32 = 1_000_000;

const CONNECTIONS: usize = 256;

pub(crate) fn limits(total_active_users: u32, new_users_per_minute: u32) -> Limits {
    Limits {
        total_active_users,
        new_users_per_minute,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_visitors_through_256_connections_exactly_fifty_are_let_in() {
    let stage = Stage::open(limits(50, PLENTY), "5m").await;
    let (entered, connections) = rush(stage.door.address(), "/", 10_000, CONNECTIONS).await;
    assert_eq!(entered, 50);
    let verdict = stage.origin.verdict();
    assert_eq!((verdict.most_inside, verdict.admissions), (50, 50));
    stage.assert_within_limits();
    let operator = stage.operator();
    let open = operator.metric("anteroom_connections_open").await;
    assert_eq!(
        open,
        Some(256.0),
        "no connection was closed, and none opened beside them"
    );
    drop(connections);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_visitors_exactly_a_minutes_limit_is_admitted() {
    let stage = Stage::open(limits(PLENTY, 70), "5m").await;
    let origin = &stage.origin;
    let (entered, _) = rush(stage.door.address(), "/", 10_000, CONNECTIONS).await;
    // A rush may have lasted beyond the end of its minute; whoever comes later may go in then.
    let more = LoadGenerator::send(&stage.door, 50, Habits::default());
    eventually("a minute's admissions are used up", async || {
        origin.minutes().values().any(|&of| of == 70)
    })
    .await;
    more.go_home().await;
    let minutes = origin.minutes();
    assert!(minutes.values().all(|&of| of <= 70), "{minutes:?}");
    assert!(entered <= 70 * minutes.len(), "{entered} in {minutes:?}");
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_allocation_keeps_both_limits_at_one_node() {
    let data = tempfile::tempdir().unwrap();
    let mut text = "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n".to_owned();
    let mut rooms = Vec::new();
    for (seats_path, rate_path, allocation) in [
        ("/seats/even", "/rate/even", "even"),
        ("/seats/curve", "/rate/curve", "curve"),
        ("/seats/counters", "/rate/counters", "counters"),
        ("/seats/leases", "/rate/leases", "leases"),
    ] {
        for (kind, path, limits) in [
            ("seats", seats_path, limits(50, 1_000)),
            ("rate", rate_path, limits(1_000, 40)),
        ] {
            let name = format!("{kind}-{allocation}");
            let origin = judging(&name, limits, CheckerClock::new(now)).await;
            text += &format!(
                "[[room]]\nname = \"{name}\"\npath = \"{path}\"\norigin = \"http://{}\"\n\
                 total_active_users = {}\nnew_users_per_minute = {}\n\
                 allocation = \"{allocation}\"\nbypass = []\n",
                origin.address(),
                limits.total_active_users,
                limits.new_users_per_minute,
            );
            rooms.push((path, limits, origin));
        }
    }
    let file = data.path().join("anteroom.toml");
    std::fs::write(&file, text).unwrap();
    let flags = ["--config".to_owned(), file.display().to_string()];
    let gateway = Gateway::start(&flags).await;
    for (path, limits, origin) in &rooms {
        // A machine that is busy tells many to wait before the room has decided; others come.
        eventually(&format!("{path} is full"), async || {
            rush(gateway.address, path, 600, 16).await;
            let minutes = origin.minutes();
            if limits.total_active_users == 50 {
                origin.verdict().admissions == 50
            } else {
                minutes.values().any(|&of| of == 40)
            }
        })
        .await;
        origin.assert_within_limits();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_that_come_free_are_taken_again_and_never_one_too_many() {
    let stage = Stage::open(limits(50, PLENTY), "2s").await;
    let origin = &stage.origin;
    let habits = Habits {
        pages: 2,
        say_goodbye: false,
        ..Habits::default()
    };
    let crowd = LoadGenerator::send(&stage.door, 300, habits);
    eventually("the room is full", async || origin.inside() == 50).await;
    let mut looks = interval(Duration::from_millis(50));
    let (mut seats_taken, mut seats) = (0, 0);
    let until = Instant::now() + Duration::from_secs(15);
    while looks.tick().await < until {
        seats_taken += origin.inside();
        seats += 50;
    }
    let counters = crowd.go_home().await;
    let fill = seats_taken * 100 / seats;
    eprintln!("fill with sessions of 2 s: {fill} %; {counters:?}");
    stage.assert_within_limits();
    assert_eq!(counters.thrown_out, 0, "{counters:?}");
    assert!(counters.failed.is_empty(), "{counters:?}");
    assert!(fill >= 60, "{fill} %");
}
