//! Limits are kept, exactly, while far more visitors come than there is room for.
//!
//! Only the origin counts. Durations are not asserted, because they depend on the machine; the
//! occupancy must not be poor.

mod fast_minute;
mod order;
mod rush;
mod windows;

use std::time::Duration;

use anteroom::demo::checking_origin::CheckerClock;
use anteroom_room::rules::Limits;
use tokio::time::{Instant, interval};

use self::rush::rush;
use crate::support::process::Gateway;
use crate::support::stage::{Stage, start_checking_origin};
use crate::support::visitors::{self, short_visits};
use crate::support::{eventually, now};
use anteroom_testkit::eventually_within;
use anteroom_testkit::load::{Habits, NodeAddress};

/// Rate that never limits admissions.
pub(crate) const PLENTY: u32 = 1_000_000;

const CONNECTIONS: usize = 256;

/// Time within which a whole minute begins and ends, and some more.
const TWO_MINUTES: Duration = Duration::from_secs(130);

pub(crate) fn limits(total_active_users: u32, new_users_per_minute: u32) -> Limits {
    Limits {
        total_active_users,
        new_users_per_minute,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_visitors_on_256_connections_exactly_fifty_are_admitted() {
    let stage = Stage::open(limits(50, PLENTY), "5m").await;
    let (entered, connections) = rush(stage.address.get().unwrap(), "/", 10_000, CONNECTIONS).await;
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
    let (entered, _) = rush(stage.address.get().unwrap(), "/", 10_000, CONNECTIONS).await;
    // The rush may last beyond the end of its minute; later visitors may enter then.
    let more = visitors::send(&stage.address, 50, &short_visits());
    // While visitors wait, the last ones come free in the last second of the minute. The rush may
    // begin in the middle of a minute, and then only the next one is used up.
    eventually_within(
        TWO_MINUTES,
        "a minute's admissions are used up",
        async || origin.minutes().values().any(|&of| of >= 68),
    )
    .await;
    more.stop().await;
    let minutes = origin.minutes();
    assert!(minutes.values().all(|&of| of <= 70), "{minutes:?}");
    assert!(entered <= 70 * minutes.len(), "{entered} in {minutes:?}");
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_less_than_two_seconds_admissions_sees_no_page() {
    let stage = Stage::open(limits(100, 60), "5m").await;
    let address = stage.address.get().unwrap();
    // A second has six admissions. The others wait for those of the next one.
    let (entered, _) = rush(address, "/", 10, 10).await;
    assert_eq!(entered, 10);
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
            let origin = start_checking_origin(&name, limits, CheckerClock::new(now)).await;
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
        // With leases a second has four admissions. On a busy machine the others may also need a
        // whole minute, and its last visitors may be late. `fast_minute` uses up a whole minute.
        let rate_used = if *path == "/rate/leases" { 4 } else { 36 };
        // They keep asking: on a busy machine many are queued before the room has decided.
        let habits = Habits {
            path,
            pages: 1..=1,
            log_out_percent: 0,
            ..short_visits()
        };
        let load = visitors::send(&NodeAddress::new(gateway.address), 150, &habits);
        eventually_within(TWO_MINUTES, &format!("{path} is full"), async || {
            let minutes = origin.minutes();
            if limits.total_active_users == 50 {
                origin.verdict().admissions == 50
            } else {
                minutes.values().any(|&of| of >= rate_used)
            }
        })
        .await;
        load.stop().await;
        origin.assert_within_limits();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn free_seats_are_granted_again_and_never_one_too_many() {
    let stage = Stage::open(limits(50, PLENTY), "2s").await;
    let origin = &stage.origin;
    let habits = Habits {
        pages: 2..=2,
        log_out_percent: 0,
        ..short_visits()
    };
    let load = visitors::send(&stage.address, 300, &habits);
    eventually("the room is full", async || origin.inside() == 50).await;
    let mut looks = interval(Duration::from_millis(50));
    let (mut seats_taken, mut seats) = (0, 0);
    let until = Instant::now() + Duration::from_secs(15);
    while looks.tick().await < until {
        seats_taken += origin.inside();
        seats += 50;
    }
    let counters = load.stop().await;
    let fill = seats_taken * 100 / seats;
    eprintln!("fill with sessions of 2 s: {fill} %; {counters:?}");
    stage.assert_within_limits();
    assert_eq!(counters.queued_with_ticket, 0, "{counters:?}");
    assert!(counters.failed.is_empty(), "{counters:?}");
    assert!(fill >= 60, "{fill} %");
}
