//! Schedules that violated an invariant once, each as small as possible.
//!
//! The seeds reach the same faults by chance. Here each has a name, and the numbers that it must
//! keep.

use anteroom_room::rules::{AllocationKind, Limits, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_sim::outcome::Outcome;
use anteroom_sim::run;
use anteroom_sim::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, FaultKind, FaultPlan, LinkRef, NodeRef, RatePoint,
    RoomPlan, Scenario, StoreRef,
};

const MINUTE: DurationMs = DurationMs::from_secs(60);

/// Returns visitors who keep coming for as long as they may.
fn steady() -> Behaviour {
    Behaviour {
        pages: 100_000.0,
        think_time: DurationMs::from_secs(10),
        parallel_requests: 0,
        second_tab: 0.0,
        patience: None,
        no_shows: 0.0,
        away: 0.0,
        throttled: 0.0,
        changes_node: 0.0,
        changes_data_center: 0.0,
        without_cookies: 0.0,
        log_out: 0.0,
        replays: 0.0,
    }
}

/// Returns two data centers of three nodes, a hundred seats and twice as many visitors.
fn full_room(session: DurationMs, length: DurationMs) -> Scenario {
    let rules = Rules {
        limits: Limits {
            total_active_users: 100,
            new_users_per_minute: 1_000,
        },
        session_duration: session,
        ..Rules::default()
    };
    let data_center = |name: &str| DataCenterPlan {
        name: name.to_owned(),
        nodes: 3,
        share: 1.0,
        to_store: Delay {
            from: DurationMs(0),
            to: DurationMs(2),
        },
        to_global: Delay {
            from: DurationMs(30),
            to: DurationMs(40),
        },
    };
    let point = |at| RatePoint {
        at,
        per_second: 4.0,
    };
    Scenario {
        name: "full room".to_owned(),
        about: String::new(),
        seed: 17,
        starts_at: Timestamp(1_694_432_730_000),
        length,
        sample_every: MINUTE,
        global_lease: DurationMs::from_secs(20),
        durability: anteroom_room::store::Durability::Unknown,
        compare: Vec::new(),
        rooms: vec![RoomPlan {
            name: "room".to_owned(),
            rules,
            events: Vec::new(),
            arrivals: vec![Arrivals {
                data_center: None,
                points: vec![point(DurationMs::ZERO), point(MINUTE)],
            }],
            behaviour: steady(),
        }],
        data_centers: vec![data_center("one"), data_center("two")],
        faults: Vec::new(),
    }
}

fn outcome_of(scenario: &Scenario) -> Outcome {
    run(scenario, 0, AllocationKind::Leases, &mut |_| {})
}

#[test]
fn a_node_cut_off_with_its_data_center_issues_seats_within_leases() {
    let mut scenario = full_room(DurationMs::from_secs(300), DurationMs::from_secs(900));
    scenario.global_lease = DurationMs::from_secs(200);
    // All active visitors are in the data center that is cut off; others come to the other one much
    // later.
    let points = |from, to| {
        let at = [from, to].map(DurationMs::from_secs);
        at.map(|at| RatePoint {
            at,
            per_second: 4.0,
        })
    };
    scenario.rooms[0].arrivals = [(1, (0, 60)), (0, (700, 760))]
        .map(|(data_center, (from, to))| Arrivals {
            data_center: Some(data_center),
            points: points(from, to).to_vec(),
        })
        .to_vec();
    let mut plan = |at, kind| {
        scenario.faults.push(FaultPlan {
            at: DurationMs::from_secs(at),
            kind,
        });
    };
    let lasts = DurationMs::from_secs(700);
    let link = LinkRef::ToGlobal(1);
    let replies_only = false;
    plan(
        120,
        FaultKind::Cut {
            link,
            replies_only,
            lasts,
        },
    );
    let session = DurationMs::from_secs(3_600);
    let within = DurationMs::ZERO;
    plan(121, FaultKind::SessionDuration { session, within });
    for (number, at) in (0..3).zip([122, 125, 128]) {
        let node = NodeRef {
            data_center: 1,
            node: number,
        };
        let after = DurationMs(500);
        plan(at, FaultKind::Restart { node, after });
    }
    let outcome = outcome_of(&scenario);
    assert_eq!(outcome.violations, []);
}

#[test]
fn a_longer_or_shorter_session_ends_no_visitors_session() {
    for (before, after) in [(60, 3_600), (60, 7_200), (3_600, 60), (300, 30)] {
        let mut scenario = full_room(DurationMs::from_secs(before), DurationMs::from_secs(600));
        let session = DurationMs::from_secs(after);
        scenario.faults.push(FaultPlan {
            at: DurationMs::from_secs(200),
            kind: FaultKind::SessionDuration {
                session,
                within: DurationMs::from_secs(5),
            },
        });
        // Shorter sessions are for visitors who come often enough.
        scenario.rooms[0].behaviour.think_time = DurationMs::from_secs(2);
        println!("{before} s to {after} s");
        let outcome = outcome_of(&scenario);
        assert_eq!(outcome.stats.admitted, 100, "{before} s to {after} s");
        assert_eq!(outcome.violations, []);
    }
}

#[test]
fn returning_visitors_are_renewed_while_the_root_counts_again() {
    for changes_node in [0.0, 1.0] {
        // One visitor per node, so that no visitor finds a credit that another one requested.
        let mut scenario = full_room(DurationMs::from_secs(12), DurationMs::from_secs(150));
        scenario.rooms[0].rules.limits.total_active_users = 6;
        scenario.rooms[0].behaviour.think_time = DurationMs::from_secs(1);
        scenario.rooms[0].behaviour.changes_node = changes_node;
        scenario.faults.push(FaultPlan {
            at: DurationMs::from_secs(60),
            kind: FaultKind::StoreLosesWrites {
                store: StoreRef::Global,
                last: DurationMs::from_secs(4),
            },
        });
        let outcome = outcome_of(&scenario);
        assert_eq!(outcome.stats.admitted, 6, "{changes_node}");
        assert_eq!(outcome.violations, []);
    }
}
