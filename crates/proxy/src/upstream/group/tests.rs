//! Tests of which origins are chosen.

use anteroom_config::{Http2, Origin as OriginConfig, OriginGroup, OwnedOrigins, RoomName};
use http::StatusCode;

use super::*;
use crate::upstream::lease::Lease;
use crate::upstream::limits::Limits;
use crate::upstream::origins::Origins;

/// Body type of the tests, which send no requests.
type Body = http_body_util::Empty<bytes::Bytes>;

fn group(count: usize) -> Arc<Group<Body>> {
    let list = (1..=count).map(|port| OriginConfig::parse(&format!("http://127.0.0.1:{port}")));
    let origins = OriginGroup {
        list: list.map(Result::unwrap).collect(),
        http2: Http2::Never,
        ca_file: None,
        health_check: None,
    };
    let limits = Limits {
        connect: Duration::from_secs(1),
        idle: Duration::from_secs(1),
        head_bytes: 65_536,
        headers: 100,
    };
    let owned = OwnedOrigins {
        owner: OriginOwner::Room(RoomName::new("shop").unwrap()),
        group: &origins,
        host: None,
    };
    Origins::new(limits).single(owned).unwrap()
}

/// Creates a group with checks.
fn checked(count: usize) -> Arc<Group<Body>> {
    let check = HealthCheck {
        path: "/".to_owned(),
        interval: anteroom_room::time::DurationMs::from_secs(5),
        timeout: anteroom_room::time::DurationMs::from_secs(2),
        healthy_after: 1,
        unhealthy_after: 1,
        expected_status: anteroom_config::Statuses {
            first: 200,
            last: 399,
        },
    };
    let group = group(count);
    Group::new(
        group.owner.clone(),
        group.origins.clone(),
        Some(check),
        Arc::default(),
        Arc::clone(&group.changes),
    )
}

fn fail(group: &Group<Body>, index: usize) {
    for _ in 0..5 {
        group.settle(index, Outcome::ConnectFailed, Duration::ZERO);
    }
}

/// Returns how often each origin is chosen while no request ends.
fn picked(group: &Group<Body>, times: usize) -> Vec<usize> {
    let mut counts = vec![0; group.len()];
    let mut leases = Vec::new();
    for _ in 0..times {
        let index = group.pick(&[]);
        counts[index] += 1;
        leases.push(Lease::on(&group.origins[index].counts));
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn the_origin_with_fewer_requests_gets_the_next_one() {
    let group = group(2);
    // With two origins, the same two are always compared, so they differ by one at most.
    assert_eq!(picked(&group, 100), [50, 50]);
    let busy: Vec<_> = (0..10)
        .map(|_| Lease::on(&group.origins[0].counts))
        .collect();
    assert_eq!(picked(&group, 10), [0, 10]);
    drop(busy);
    assert_eq!(group.origins[0].in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_spread_over_many_origins() {
    let counts = picked(&group(10), 1_000);
    // Two choices keep the fullest close to the average; one choice would not.
    assert!(
        counts.iter().all(|count| (90..=110).contains(count)),
        "{counts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_ejected_origin_gets_no_requests_until_it_comes_back() {
    let group = group(3);
    fail(&group, 1);
    assert_eq!(picked(&group, 90)[1], 0);
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(picked(&group, 90)[1], 0);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(picked(&group, 90)[1] > 0);
    // On trial: two failures are enough.
    group.settle(1, Outcome::TimedOut, Duration::ZERO);
    group.settle(1, Outcome::TimedOut, Duration::ZERO);
    assert_eq!(picked(&group, 90)[1], 0);
}

#[tokio::test(start_paused = true)]
async fn requests_never_eject_the_last_origin() {
    let group = group(2);
    fail(&group, 0);
    fail(&group, 1);
    fail(&group, 1);
    assert_eq!(picked(&group, 10), [0, 10]);
    assert!(!group.is_down(), "nobody checks");
}

#[tokio::test(start_paused = true)]
async fn requests_never_eject_more_than_half() {
    for (count, most) in [(2, 1), (3, 1), (4, 2), (5, 2), (7, 3)] {
        let group = group(count);
        for index in (0..count).cycle().take(10 * count) {
            fail(&group, index);
        }
        let out = picked(&group, 100).iter().filter(|n| **n == 0).count();
        assert_eq!(out, most, "of {count}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_response_ejects_nobody_and_5xx_ejects_by_share() {
    let group = group(2);
    let respond = |index, status| group.settle(index, Outcome::Answered(status), Duration::ZERO);
    for _ in 0..1_000 {
        respond(0, StatusCode::INTERNAL_SERVER_ERROR);
    }
    assert_eq!(picked(&group, 10), [5, 5]);
    tokio::time::advance(Duration::from_secs(10)).await;
    // One client requests a failing page again and again; others request other pages.
    for _ in 0..100 {
        respond(0, StatusCode::GATEWAY_TIMEOUT);
        respond(0, StatusCode::OK);
        respond(0, StatusCode::NOT_FOUND);
    }
    assert_eq!(picked(&group, 10), [5, 5]);
    tokio::time::advance(Duration::from_secs(10)).await;
    for _ in 0..10 {
        respond(0, StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(picked(&group, 10), [0, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_recovered_origin_is_reported_after_a_good_response() {
    let group = group(2);
    let change_after = |index, outcome| {
        let now = Instant::now();
        let good = |health: &mut Health| match outcome {
            Outcome::Answered(_) => health.handle_good(now),
            _ => health.handle_failure(true, true, now),
        };
        let changed = group.change(index, now, good);
        changed.map(|changed| (changed.was, changed.lasted.as_secs(), changed.after))
    };
    let good = Outcome::Answered(StatusCode::OK);
    for _ in 0..4 {
        assert_eq!(change_after(0, Outcome::Broken), None);
    }
    let out = change_after(0, Outcome::Broken);
    assert_eq!(out, Some((Condition::Up, 0, Condition::Out)));
    assert_eq!(change_after(0, good), None, "the request was sent before");
    tokio::time::advance(Duration::from_secs(12)).await;
    assert_eq!(change_after(0, Outcome::Broken), None);
    let back = change_after(0, good);
    assert_eq!(back, Some((Condition::Out, 2, Condition::Up)));
    assert_eq!(change_after(0, good), None, "once");
}

#[tokio::test(start_paused = true)]
async fn without_healthy_origins_the_room_is_down_and_requests_go_on() {
    let group = checked(2);
    group.note_check(0, Err("no".to_owned()));
    assert!(!group.is_down());
    assert_eq!(picked(&group, 10), [0, 10]);
    group.note_check(1, Err("no".to_owned()));
    assert!(group.is_down());
    assert_eq!(picked(&group, 10), [5, 5], "active visitors pass");
    group.note_check(1, Ok(()));
    assert!(!group.is_down());
    assert_eq!(picked(&group, 10), [0, 10]);
}

#[tokio::test(start_paused = true)]
async fn an_origin_ejected_by_requests_beats_one_that_fails_its_checks() {
    let group = checked(2);
    fail(&group, 0);
    group.note_check(1, Err("no".to_owned()));
    assert_eq!(picked(&group, 10), [10, 0]);
    assert!(!group.is_down());
}

#[tokio::test(start_paused = true)]
async fn a_second_attempt_goes_to_another_origin() {
    let group = group(3);
    assert_eq!(group.pick(&[0, 2]), 1);
    fail(&group, 1);
    assert_eq!(
        group.pick(&[0]),
        2,
        "an origin that is up comes before an ejected one"
    );
    assert_eq!(
        group.pick(&[0, 2]),
        1,
        "an ejected origin comes before one that was tried"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_is_visible_to_every_group_of_the_origin() {
    let before = group(2);
    let after = Group::new(
        before.owner.clone(),
        before.origins.clone(),
        None,
        Arc::clone(&before.retries),
        Arc::clone(&before.changes),
    );
    assert_eq!(picked(&after, 10), [5, 5]);
    fail(&before, 0);
    assert_eq!(picked(&after, 10), [0, 10]);
}

#[tokio::test(start_paused = true)]
async fn failures_of_one_event_affect_health_once() {
    let group = group(2);
    group.settle(0, Outcome::Broken, Duration::ZERO);
    for _ in 0..60 {
        group.count(0, Outcome::Broken, Duration::ZERO);
    }
    assert_eq!(group.origins[0].counts.of(Outcome::Broken), 61);
    assert_eq!(picked(&group, 10), [5, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_recovered_origin_is_seen_beside_one_that_fails_its_checks() {
    let group = checked(4);
    fail(&group, 0);
    group.note_check(0, Err("no".to_owned()));
    tokio::time::advance(Duration::from_secs(20)).await;
    fail(&group, 1);
    assert_eq!(picked(&group, 90)[..2], [0, 0]);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(picked(&group, 90)[1] > 0);
}
