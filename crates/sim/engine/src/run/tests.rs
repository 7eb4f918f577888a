//! Small scenarios that the checkers watch.

use anteroom_room::rules::{AllocationKind, Limits, Rules};
use anteroom_room::time::{DurationMs, Timestamp};

use super::*;
use crate::outcome::Invariant;
use crate::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, FaultKind, FaultPlan, NodeRef, RatePoint, RoomPlan,
    StoreRef,
};

const FIRST: NodeRef = NodeRef {
    data_center: 0,
    node: 0,
};

/// Returns a scenario of five minutes with two data centers of three nodes and two, and twice as
/// many visitors as it admits.
pub(crate) fn scenario() -> Scenario {
    let ms = |from, to| Delay {
        from: DurationMs(from),
        to: DurationMs(to),
    };
    let data_center = |name: &str, nodes, share| DataCenterPlan {
        name: name.to_owned(),
        nodes,
        share,
        to_store: ms(1, 3),
        to_global: ms(20, 40),
    };
    let point = |secs, per_second| RatePoint {
        at: DurationMs::from_secs(secs),
        per_second,
    };
    Scenario {
        name: "small".to_owned(),
        about: String::new(),
        seed: 1,
        starts_at: Timestamp(1_694_432_754_000),
        length: DurationMs::from_secs(300),
        sample_every: DurationMs::from_secs(10),
        global_lease: anteroom_room::ledger::LeaseTerms::ROOT.ttl,
        durability: anteroom_room::store::Durability::Unknown,
        compare: vec![AllocationKind::Leases],
        rooms: vec![RoomPlan {
            name: "shop".to_owned(),
            rules: Rules {
                limits: limits(60, 120),
                session_duration: DurationMs::from_secs(60),
                ..Rules::default()
            },
            events: Vec::new(),
            arrivals: vec![Arrivals {
                data_center: None,
                points: vec![
                    point(0, 0.5),
                    point(60, 0.5),
                    point(60, 4.0),
                    point(300, 4.0),
                ],
            }],
            behaviour: Behaviour {
                pages: 4.0,
                think_time: DurationMs::from_secs(8),
                parallel_requests: 2,
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
            },
        }],
        data_centers: vec![data_center("sjc", 3, 2.0), data_center("ams", 2, 1.0)],
        faults: Vec::new(),
    }
}

fn limits(total_active_users: u32, new_users_per_minute: u32) -> Limits {
    Limits {
        total_active_users,
        new_users_per_minute,
    }
}

fn misbehaving() -> Behaviour {
    Behaviour {
        second_tab: 0.2,
        patience: Some(DurationMs::from_secs(120)),
        no_shows: 0.05,
        away: 0.0,
        throttled: 0.0,
        changes_node: 0.2,
        changes_data_center: 0.02,
        without_cookies: 0.05,
        log_out: 0.2,
        replays: 0.1,
        ..scenario().rooms[0].behaviour
    }
}

fn run_and_check(scenario: &Scenario) -> Outcome {
    let outcome = run(scenario, 0, AllocationKind::Leases, &mut |_| {});
    assert_eq!(outcome.violations, [], "seed {}", scenario.seed);
    outcome
}

fn with_fault(kind: FaultKind) -> Scenario {
    let mut scenario = scenario();
    scenario.faults.push(FaultPlan {
        at: DurationMs::from_secs(100),
        kind,
    });
    scenario.rooms[0].behaviour = misbehaving();
    scenario
}

/// Returns the scenario with one data center, whose store is the root's.
fn in_one_data_center(scenario: &Scenario) -> Scenario {
    let mut in_one_data_center = scenario.clone();
    in_one_data_center.data_centers.truncate(1);
    in_one_data_center.data_centers[0].to_global = Delay {
        from: DurationMs::ZERO,
        to: DurationMs::ZERO,
    };
    in_one_data_center
}

fn check_fault(kind: FaultKind) {
    for seed in 1..=3 {
        let mut scenario = with_fault(kind);
        scenario.seed = seed;
        run_and_check(&in_one_data_center(&scenario));
        run_and_check(&scenario);
    }
}

#[test]
fn an_overloaded_room_is_full_and_never_over_its_limits() {
    let outcome = run_and_check(&scenario());
    let stats = &outcome.stats;
    assert!((900..1_050).contains(&stats.visitors), "{stats:?}");
    assert_eq!(stats.inside_max, 60);
    assert_eq!((stats.above_seats, stats.above_rate), (0, 0));
    assert!(stats.fill_while_overloaded > Some(0.9), "{stats:?}");
    assert!(stats.wait_ms_p50 > Some(1_000), "{stats:?}");
    assert_eq!(outcome.samples.len(), 30);
    let last = outcome.samples.last().unwrap();
    assert_eq!(u64::from(last.waiting), stats.visitors - stats.admitted);
}

#[test]
fn an_empty_room_admits_nearly_every_visitor_at_once() {
    let mut scenario = scenario();
    scenario.rooms[0].rules.limits = limits(100_000, 100_000);
    let stats = run_and_check(&scenario).stats;
    assert_eq!(stats.admitted, stats.visitors);
    // Two trips to a distant root, one after the other, take longer than a visitor waits.
    assert!(stats.queued * 200 <= stats.visitors, "{stats:?}");
}

#[test]
fn misbehaving_visitors_break_no_invariant() {
    for seed in 1..=5 {
        let mut scenario = scenario();
        scenario.seed = seed;
        scenario.rooms[0].behaviour = misbehaving();
        let stats = run_and_check(&scenario).stats;
        assert!(stats.abandoned > 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let digest = |seed| {
        let mut scenario = with_fault(FaultKind::BadNetwork {
            lost: 0.1,
            doubled: 0.1,
            delayed: DurationMs(500),
            lasts: DurationMs::from_secs(60),
        });
        scenario.seed = seed;
        let mut simulation = Simulation::new(&scenario, 0, AllocationKind::Leases);
        simulation.run_until(DurationMs::from_secs(200));
        simulation.digest()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

#[test]
fn each_allocation_meets_the_same_visitors() {
    let visitors = |allocation| {
        let outcome = run(&scenario(), 0, allocation, &mut |_| {});
        let others = outcome.violations.iter().map(|v| v.promise);
        let limits = [Invariant::Seats, Invariant::Rate];
        assert_eq!(others.filter(|p| limits.contains(p)).count(), 0);
        assert!(outcome.stats.admitted > 0);
        outcome.stats.visitors
    };
    let leases = visitors(AllocationKind::Leases);
    for other in [
        AllocationKind::Even,
        AllocationKind::Curve,
        AllocationKind::Counters,
    ] {
        assert_eq!(visitors(other), leases);
    }
}

#[test]
fn a_crash_a_restart_and_a_pause_break_no_invariant() {
    let after = DurationMs::from_secs(20);
    check_fault(FaultKind::Crash { node: FIRST, after });
    check_fault(FaultKind::Restart { node: FIRST, after });
    check_fault(FaultKind::Pause {
        node: FIRST,
        lasts: after,
    });
}

#[test]
fn a_bad_network_and_an_unavailable_store_break_no_invariant() {
    let lasts = DurationMs::from_secs(30);
    check_fault(FaultKind::BadNetwork {
        lost: 0.2,
        doubled: 0.2,
        delayed: DurationMs(3_000),
        lasts,
    });
    check_fault(FaultKind::StoreDown {
        store: StoreRef::Global,
        lasts,
    });
}

#[test]
fn a_store_that_loses_writes_breaks_no_invariant() {
    let store = StoreRef::Global;
    check_fault(FaultKind::StoreWiped { store });
    check_fault(FaultKind::StoreLosesWrites {
        store,
        last: DurationMs(800),
    });
    check_fault(FaultKind::StoreClockSteps {
        store,
        by_ms: -30_000,
    });
}

#[test]
fn clocks_that_are_a_little_off_break_no_invariant() {
    for by_ms in [-450, 450] {
        check_fault(FaultKind::NodeClockIsOff {
            node: FIRST,
            by_ms,
            drifts_ppm: 200,
        });
    }
}

#[test]
fn changed_limits_hold_while_they_spread() {
    let within = DurationMs::from_secs(10);
    for limits in [limits(20, 30), limits(100, 300)] {
        check_fault(FaultKind::Limits { limits, within });
    }
    for secs in [20, 180] {
        let session = DurationMs::from_secs(secs);
        check_fault(FaultKind::SessionDuration { session, within });
    }
}

#[test]
fn a_trace_lists_decisions() {
    let mut simulation = Simulation::new(&scenario(), 0, AllocationKind::Leases).with_trace(50);
    simulation.run_until(DurationMs::from_secs(120));
    let trace = simulation.trace().unwrap();
    assert!(trace.lines().any(|line| line.contains("queues visitor")));
    assert_eq!(trace.lines().count(), 50);
}
