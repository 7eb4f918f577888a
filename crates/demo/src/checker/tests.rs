//! The checker against a naive model, and single cases.

use proptest::prelude::*;

use super::*;

const SESSION: DurationMs = DurationMs(5_000);
const LIMITS: Limits = Limits {
    total_active_users: 2,
    new_users_per_minute: 3,
};

const fn visitor(number: u8) -> VisitorId {
    VisitorId([number; 16])
}

const fn sighting(number: u8, accepted_at: u64, seat_ends_at: u64) -> OriginRequest {
    OriginRequest {
        visitor: visitor(number),
        seat_ends_at: Timestamp(seat_ends_at),
        accepted_at: Timestamp(accepted_at),
    }
}

fn checker(sightings: &[(u64, OriginRequest)]) -> Checker {
    let mut checker = Checker::new(SESSION);
    for (now, sighting) in sightings {
        checker.observe(sighting, None, Timestamp(*now));
    }
    checker
}

#[test]
fn a_seat_that_ends_now_is_free_at_once() {
    let verdict = checker(&[
        (0, sighting(1, 0, 1_000)),
        (0, sighting(2, 0, 1_000)),
        (1_000, sighting(3, 1_000, 2_000)),
    ])
    .verdict(LIMITS, Timestamp(1_000));
    assert_eq!((verdict.most_inside, verdict.inside), (2, 1));
    assert!(verdict.is_within_limits());
}

#[test]
fn one_visitor_too_many_is_noticed_even_for_a_moment() {
    let verdict = checker(&[
        (0, sighting(1, 0, 1_000)),
        (0, sighting(2, 0, 1_000)),
        (999, sighting(3, 999, 2_000)),
    ])
    .verdict(LIMITS, Timestamp(1_000_000));
    assert_eq!((verdict.most_inside, verdict.inside), (3, 0));
    assert!(verdict.is_over_total_active_users());
    assert!(!verdict.is_within_limits());
}

#[test]
fn an_older_ticket_does_not_shorten_a_seat() {
    let mut checker = checker(&[(0, sighting(1, 0, 9_000)), (1, sighting(1, 0, 2_000))]);
    assert_eq!(checker.inside(Timestamp(8_999)), 1);
    assert_eq!(checker.inside(Timestamp(9_000)), 0);
}

#[test]
fn admissions_count_in_the_minute_they_name_and_once() {
    let verdict = checker(&[
        (60_100, sighting(1, 59_999, 70_000)),
        (60_100, sighting(2, 60_000, 70_000)),
        (60_200, sighting(2, 60_000, 70_000)),
        (60_300, sighting(2, 60_250, 70_000)),
    ])
    .verdict(LIMITS, Timestamp(60_300));
    assert_eq!(
        (verdict.admissions, verdict.most_admissions_in_a_minute),
        (3, 2)
    );
}

#[test]
fn too_many_admissions_in_a_minute_are_over_the_limit() {
    let requests: Vec<_> = (0..4)
        .map(|n| {
            (
                u64::from(n) * 1_000,
                sighting(n, u64::from(n) * 1_000, u64::from(n) * 1_000 + 1),
            )
        })
        .collect();
    let verdict = checker(&requests).verdict(LIMITS, Timestamp(4_000));
    assert_eq!(verdict.most_inside, 1);
    assert!(verdict.is_over_new_users_per_minute());
    assert!(!verdict.is_within_limits());
}

#[test]
fn a_request_that_was_sent_in_time_is_not_late() {
    let request = sighting(1, 0, 1_000);
    let judge = |sent_at| {
        let mut checker = Checker::new(SESSION);
        checker.observe(&request, Some(Timestamp(sent_at)), Timestamp(9_000));
        checker.verdict(LIMITS, Timestamp(9_000))
    };
    let on_the_way = judge(1_500);
    assert!(on_the_way.is_within_limits());
    assert_eq!(on_the_way.late_on_the_way_requests, 1);
    assert_eq!((on_the_way.late_ms_max, on_the_way.inside), (8_000, 0));
    let late = judge(1_501);
    assert_eq!(late.late_requests, 1);
    assert!(!late.is_within_limits());
}

#[test]
fn without_a_time_of_sending_a_request_is_late_half_a_second_after_its_seat() {
    let on_the_way = checker(&[(1_500, sighting(1, 0, 1_000))]).verdict(LIMITS, Timestamp(1_500));
    assert_eq!(
        (
            on_the_way.late_requests,
            on_the_way.late_on_the_way_requests
        ),
        (0, 1)
    );
    assert_eq!((on_the_way.late_ms_max, on_the_way.inside), (500, 0));
    assert!(on_the_way.is_within_limits());
    let blamed = checker(&[(1_501, sighting(1, 0, 1_000))]).verdict(LIMITS, Timestamp(1_501));
    assert_eq!(
        (blamed.late_requests, blamed.late_on_the_way_requests),
        (1, 0)
    );
    assert!(!blamed.is_within_limits());
}

#[test]
fn a_request_without_headers_makes_the_result_unproven() {
    let mut checker = Checker::new(SESSION);
    checker.observe_without_headers(Timestamp(1));
    let verdict = checker.verdict(LIMITS, Timestamp(1));
    assert_eq!((verdict.requests, verdict.unjudged_requests), (1, 1));
    assert!(!verdict.is_within_limits());
}

#[test]
fn a_logged_out_visitor_leaves_at_once_and_counts_when_let_through() {
    let mut checker = checker(&[(0, sighting(1, 0, 9_000))]);
    checker.revoke(visitor(1), Timestamp(10));
    checker.revoke(visitor(1), Timestamp(10));
    assert_eq!(checker.inside(Timestamp(10)), 0);
    checker.observe(&sighting(2, 0, 9_000), None, Timestamp(20));
    checker.observe(&sighting(1, 0, 9_000), None, Timestamp(20));
    assert_eq!(checker.inside(Timestamp(20)), 1);
    let verdict = checker.verdict(LIMITS, Timestamp(20));
    assert_eq!((verdict.revoked, verdict.most_inside), (1, 2));
    checker.observe(&sighting(1, 30, 9_000), None, Timestamp(30));
    assert_eq!(checker.inside(Timestamp(30)), 2, "it was admitted again");
}

#[test]
fn limits_are_an_argument_of_the_verdict() {
    let mut checker = checker(&[(0, sighting(1, 0, 9_000)), (0, sighting(2, 0, 9_000))]);
    assert!(checker.verdict(LIMITS, Timestamp(1)).is_within_limits());
    let lower = Limits {
        total_active_users: 1,
        ..LIMITS
    };
    assert!(
        checker
            .verdict(lower, Timestamp(1))
            .is_over_total_active_users()
    );
}

/// Event for the checker.
#[derive(Clone, Debug)]
enum Event {
    Request {
        visitor: u8,
        accepted_ago: u64,
        seat_ms: u64,
        late_ms: u64,
    },
    WithoutHeaders,
    Revoke {
        visitor: u8,
    },
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let event = prop_oneof![
        8 => (0..6_u8, 0..90_000_u64, 0..12_000_u64, 0..700_u64).prop_map(
            |(visitor, accepted_ago, seat_ms, late_ms)| Event::Request {
                visitor,
                accepted_ago: accepted_ago / 20_000 * 20_000,
                seat_ms: seat_ms / 500 * 500,
                late_ms,
            }
        ),
        1 => Just(Event::WithoutHeaders),
        2 => (0..6_u8).prop_map(|visitor| Event::Revoke { visitor }),
    ];
    proptest::collection::vec((0..4_000_u64, event), 0..80)
}

/// Keeps every request and counts from the beginning each time.
#[derive(Default)]
struct Model {
    kept: Vec<(Timestamp, OriginRequest)>,
    logged_out: BTreeMap<VisitorId, Timestamp>,
    admitted: Vec<OriginRequest>,
    most_inside: usize,
    most_seen: usize,
}

impl Model {
    fn inside(&self, now: Timestamp) -> usize {
        self.distinct(|_, kept| kept.seat_ends_at > now)
    }

    fn seen(&self, now: Timestamp) -> usize {
        self.distinct(|seen_at, _| seen_at + SESSION > now)
    }

    fn distinct(&self, is_counted: impl Fn(Timestamp, &OriginRequest) -> bool) -> usize {
        let counted = self.kept.iter().filter(|(at, kept)| is_counted(*at, kept));
        counted
            .map(|(_, kept)| kept.visitor)
            .collect::<BTreeSet<_>>()
            .len()
    }

    fn request(&mut self, now: Timestamp, sighting: OriginRequest) {
        self.admitted.push(sighting);
        let ended_at = self.logged_out.get(&sighting.visitor);
        if ended_at.is_some_and(|at| sighting.accepted_at <= *at) {
            if sighting.seat_ends_at > now {
                self.most_inside = self.most_inside.max(self.inside(now) + 1);
            }
            let seen = OriginRequest {
                seat_ends_at: Timestamp::ZERO,
                ..sighting
            };
            self.kept.push((now, seen));
            self.most_seen = self.most_seen.max(self.seen(now));
            return;
        }
        self.kept.push((now, sighting));
        self.most_inside = self.most_inside.max(self.inside(now));
        self.most_seen = self.most_seen.max(self.seen(now));
    }

    fn most_admissions(&self) -> usize {
        let of_minute = |minute| {
            let named = self
                .admitted
                .iter()
                .filter(|s| s.accepted_at.minute() == minute);
            named
                .map(|s| (s.visitor, s.accepted_at))
                .collect::<BTreeSet<_>>()
                .len()
        };
        let minutes = self.admitted.iter().map(|s| s.accepted_at.minute());
        minutes.map(of_minute).max().unwrap_or(0)
    }
}

proptest! {
    #[test]
    fn the_checker_agrees_with_a_model_that_forgets_nothing(events in events()) {
        let mut checker = Checker::new(SESSION);
        let mut model = Model::default();
        let mut now = Timestamp(1_000_000);
        for (later, event) in events {
            now = now + DurationMs(later);
            match event {
                Event::Request { visitor: number, accepted_ago, seat_ms, late_ms } => {
                    let sighting = OriginRequest {
                        visitor: visitor(number),
                        accepted_at: now.floor_to(DurationMs(20_000)) - DurationMs(accepted_ago),
                        seat_ends_at: now + DurationMs(seat_ms) - DurationMs(late_ms),
                    };
                    checker.observe(&sighting, None, now);
                    model.request(now, sighting);
                }
                Event::WithoutHeaders => checker.observe_without_headers(now),
                Event::Revoke { visitor: number } => {
                    checker.revoke(visitor(number), now);
                    model.kept.retain(|(_, kept)| kept.visitor != visitor(number));
                    model.logged_out.insert(visitor(number), now);
                }
            }
            let verdict = checker.verdict(LIMITS, now);
            prop_assert_eq!(verdict.inside, model.inside(now));
            prop_assert_eq!(verdict.most_inside, model.most_inside);
            prop_assert_eq!(verdict.most_seen_in_a_session, model.most_seen);
            prop_assert_eq!(verdict.most_admissions_in_a_minute, model.most_admissions());
        }
    }
}
