//! Short logs with known findings.

use anteroom_room::time::Timestamp;
use anteroom_testkit::load::{Exchange, NodeAt, RequestOutcome, Visit, WaitNotice};

use super::*;

const WAITS: RequestOutcome = RequestOutcome::Queued(WaitNotice {
    is_moving: true,
    people_ahead: None,
    position: None,
    wait: None,
    has_reason: false,
});

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Creates a visitor with these requests: when they were sent and answered, and the outcome.
fn visit(exchanges: &[(u64, u64, RequestOutcome)], seat_ends_at: Option<u64>) -> Visit {
    let exchanges = exchanges.iter().map(|&(sent, heard, outcome)| Exchange {
        sent_at: millis(sent),
        response: Some((millis(heard), outcome)),
    });
    let exchanges: Vec<Exchange> = exchanges.collect();
    Visit {
        at: NodeAt(0, 0),
        due_at: exchanges[0].sent_at,
        exchanges,
        seat_ends_at: seat_ends_at.map(millis),
    }
}

fn findings_with(seats: u32, per_minute: u32, visits: Vec<Visit>) -> Findings {
    let log = NewcomerLog {
        began_at: Timestamp(60_000),
        ended_at: millis(10_000),
        visits,
    };
    let limits = Limits {
        total_active_users: seats,
        new_users_per_minute: per_minute,
    };
    Findings::of(&log, limits, millis(8_000))
}

fn findings(seats: u32, visits: Vec<Visit>) -> Findings {
    findings_with(seats, 1_000_000, visits)
}

fn admitted(sent: u64, ends: u64) -> Visit {
    visit(&[(sent, sent + 10, RequestOutcome::Admitted)], Some(ends))
}

fn queued(sent: u64, heard: u64) -> Visit {
    visit(&[(sent, heard, WAITS)], None)
}

#[test]
fn the_only_visitor_of_an_empty_room_waits_for_nothing() {
    let found = findings(1, vec![queued(100, 350)]);
    assert_eq!((found.queued, found.first_though_free), (1, 1));
    assert_eq!(found.first_though_free_from_rest, 1);
    assert_eq!(found.utilization_at_first_queue, Some(0.0));
}

#[test]
fn a_visitor_of_a_full_room_waits_for_a_seat() {
    let found = findings(1, vec![admitted(0, 9_000), queued(100, 350)]);
    assert_eq!((found.queued, found.first_though_free), (1, 0));
    assert_eq!(found.though_free_for_all, 0);
    assert_eq!(found.utilization_at_first_queue, Some(1.0));
}

#[test]
fn a_seat_that_ends_while_the_request_is_on_its_way_was_not_free() {
    let found = findings(1, vec![admitted(0, 200), queued(100, 350)]);
    assert_eq!(found.first_though_free, 0);
    let found = findings(1, vec![admitted(0, 200), queued(201, 350)]);
    assert_eq!(found.first_though_free, 1);
    assert_eq!(found.first_though_free_from_rest, 0);
}

#[test]
fn requests_on_their_way_may_take_the_last_seats() {
    // The first one is admitted only after the second one was queued.
    let slow = visit(&[(0, 400, RequestOutcome::Admitted)], Some(9_000));
    assert_eq!(
        findings(1, vec![slow.clone(), queued(100, 350)]).first_though_free,
        0
    );
    assert_eq!(
        findings(2, vec![slow, queued(100, 350)]).first_though_free,
        1
    );
}

#[test]
fn a_visitor_behind_another_one_is_not_first() {
    let found = findings(9, vec![queued(0, 200), queued(100, 350), queued(100, 199)]);
    assert_eq!((found.queued, found.first_though_free), (3, 1));
    // With room for all of them, each waits for nothing.
    assert_eq!(found.though_free_for_all, 3);
}

#[test]
fn a_used_up_minute_or_second_is_a_reason_to_wait() {
    let found = findings_with(9, 1, vec![admitted(0, 20), queued(100, 350)]);
    assert_eq!(found.first_though_free, 0);
    // Of 30 in a minute, three may come in a second.
    let mut visits: Vec<Visit> = (0..3).map(|_| admitted(0, 20)).collect();
    visits.push(queued(100, 350));
    assert_eq!(findings_with(9, 30, visits.clone()).first_though_free, 0);
    visits.push(queued(1_100, 1_350));
    visits.remove(3);
    assert_eq!(findings_with(9, 30, visits).first_though_free, 1);
}

#[test]
fn the_fill_counts_while_overloaded_and_newcomers_come() {
    // One of two seats is taken; another visitor asks and waits from 6 s on, until newcomers end to
    // come at 8 s.
    let visits = vec![admitted(0, 9_500), queued(6_000, 6_100)];
    let found = findings(2, visits.clone());
    assert_eq!(found.overloaded_for, millis(2_000));
    let fill = found.fill_while_overloaded.unwrap();
    assert!((fill - 0.5).abs() < 1e-9, "{fill}");
    // With a seat for everybody there is no overload.
    assert_eq!(findings(3, visits).fill_while_overloaded, None);
}

#[test]
fn an_inversion_is_the_time_by_which_the_admitted_came_later() {
    let first = visit(
        &[(0, 10, WAITS), (2_000, 2_010, RequestOutcome::Admitted)],
        Some(9_000),
    );
    let found = findings(1, vec![first, admitted(700, 1_500), queued(900, 950)]);
    let inversion = &found.inversion;
    // The first one is admitted while the third one waits, without an inversion.
    assert_eq!(inversion.count(), 2);
    assert_eq!(inversion.quantile(50), Duration::ZERO);
    assert_eq!(inversion.quantile(100), millis(700));
}

#[test]
fn a_newcomer_overtakes_those_who_came_more_than_a_second_earlier() {
    let overtaking = |came| findings(9, vec![queued(0, 10), admitted(came, 9_000)]).overtaking;
    assert_eq!(overtaking(1_000), 0);
    assert_eq!(overtaking(1_001), 1);
    // One who has waited overtakes as well, but is not a newcomer any more.
    let waited = visit(
        &[
            (2_000, 2_010, WAITS),
            (4_000, 4_010, RequestOutcome::Admitted),
        ],
        Some(9_000),
    );
    assert_eq!(findings(9, vec![queued(0, 10), waited]).overtaking, 0);
}

#[test]
fn people_ahead_are_compared_with_those_who_wait_and_came_earlier() {
    let queued_behind = RequestOutcome::Queued(WaitNotice {
        people_ahead: Some(5),
        ..WaitNotice::default()
    });
    let last = visit(&[(300, 310, WAITS), (2_000, 2_010, queued_behind)], None);
    let gone = visit(
        &[(100, 110, WAITS), (1_000, 1_010, RequestOutcome::Admitted)],
        Some(9_000),
    );
    let visits = vec![
        queued(0, 10),
        gone,
        queued(200, 210),
        last,
        queued(400, 410),
    ];
    let found = findings(1, visits);
    assert_eq!(found.ahead, [Ahead { shown: 5, truth: 2 }]);
    assert_eq!(found.ahead_error(50), 3);
}

#[test]
fn the_most_admissions_of_a_second_do_not_depend_on_the_clock() {
    let visits = [0, 600, 1_400, 1_500, 1_590].map(|at| admitted(at, 9_000));
    let found = findings(9, visits.to_vec());
    assert_eq!((found.admitted, found.most_in_a_second), (5, 4));
    assert_eq!(found.most_in_60_s, 5);
}

#[test]
fn an_admitted_visitor_without_a_page_is_noticed_unless_the_log_ends() {
    let without = |at| visit(&[(0, 10, WAITS), (at, at, RequestOutcome::Admitted)], None);
    assert_eq!(findings(9, vec![without(8_900)]).without_page, 1);
    assert_eq!(findings(9, vec![without(9_100)]).without_page, 0);
    assert_eq!(findings(9, vec![admitted(0, 9_000)]).without_page, 0);
}
