//! Newcomers at a fixed rate, whose log is examined afterwards.

use std::time::Duration;

use anteroom_e2e::newcomers::Findings;
use anteroom_e2e::origin::ROOM;
use anteroom_testkit::load::{NewcomerLog, NewcomerPlan, Visit};

use super::{Run, limits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_newcomers_agrees_with_the_origin() {
    const SEATS: u32 = 60;
    let setup = limits(SEATS, 600, 12);
    let room = setup.limits;
    let run = Run::start(setup).await;
    let plan = NewcomerPlan {
        per_second_at_node: 8,
        lasts: Duration::from_secs(5),
        at_most: usize::MAX,
        goes_on: Duration::ZERO,
        stays: Duration::ZERO..=Duration::ZERO,
        think: Duration::from_secs(1),
        room: ROOM.to_owned(),
        seed: 3,
    };
    let (routes, nodes) = (run.cluster.routes(), run.cluster.all());
    let log = NewcomerLog::of(&routes, &nodes, &plan).await;
    let found = Findings::of(&log, room, plan.lasts);
    let count = |is_so: fn(&Visit) -> bool| log.visits.iter().filter(|one| is_so(one)).count();
    let with_page = count(|visit| visit.seat_ends_at.is_some()) as u64;
    let unanswered = count(|visit| {
        let newest = visit.exchanges.last();
        newest.is_none_or(|newest| newest.response.is_none())
    }) as u64;
    let admissions = run.cluster.origin().admissions();
    assert!(with_page <= admissions, "{with_page} of {admissions}");
    let most = found.admitted + unanswered;
    assert!(admissions <= most, "{admissions} of {most}");
    run.cluster.origin().assert_within_limits();
    // Some 240 come, so the room fills, and the others wait.
    assert_eq!(found.failed, 0);
    assert!(with_page >= u64::from(SEATS) / 2, "{with_page} got a page");
    assert!(found.queued >= u64::from(SEATS), "{} waited", found.queued);
    assert!(!found.ahead.is_empty(), "polls tell who is ahead");
}
