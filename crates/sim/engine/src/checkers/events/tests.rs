//! Checkers of events on made-up facts: each sees the violation that it is for, and no other.

use std::sync::LazyLock;

use anteroom_config::{EventName, EventStep, EventValues, RoomName};
use anteroom_room::event::EventTimes;
use anteroom_room::id::VisitorId;
use anteroom_room::rules::{Limits, QueueingMethod, Rules};

use super::*;
use crate::checkers::{Checkers, WaitResponse};
use crate::outcome::Invariant;
use crate::run::tests::scenario;

const T: u64 = 1_700_000_000_000;

const fn at(seconds: u64) -> Timestamp {
    Timestamp(T + seconds * 1_000)
}

const fn limits(each: u32) -> Limits {
    Limits {
        total_active_users: each,
        new_users_per_minute: each,
    }
}

/// Returns a room that lets everybody pass, with a sale from 1,100 to 1,200 s and its prequeue at
/// 1,000 s.
fn file() -> RoomConfig {
    let rules = Rules {
        limits: limits(50),
        queueing_method: QueueingMethod::Passthrough,
        ..Rules::default()
    };
    let event = RoomEvent {
        name: EventName::new("sale").unwrap(),
        description: String::new(),
        is_suspended: false,
        times: EventTimes {
            prequeue_at: at(1_000),
            starts_at: at(1_100),
            ends_at: Some(at(1_200)),
        },
        is_shuffled: true,
        values: EventValues {
            limits: Some(limits(5)),
            queueing_method: Some(QueueingMethod::Fifo),
            ..EventValues::default()
        },
        steps: vec![EventStep {
            after: DurationMs::from_secs(50),
            total_active_users: Some(9),
            new_users_per_minute: None,
        }],
    };
    RoomConfig::of_rules(RoomName::new("shop").unwrap(), rules, vec![event])
}

fn node(file: &RoomConfig, seconds: u64) -> ScheduledNode<'_> {
    static NOTHING: LazyLock<RoomOverrides> = LazyLock::new(RoomOverrides::default);
    ScheduledNode {
        node: 0,
        incarnation: 0,
        file,
        applied: limits(5),
        wall: at(seconds),
        is_steady: true,
        stepped_at: Timestamp::ZERO,
        begun: &[],
        known: &NOTHING,
        known_since: Some(Timestamp::ZERO),
        stored: None,
    }
}

fn checkers() -> Checkers {
    Checkers::new(&scenario(), &Rules::default())
}

fn shown(file: &RoomConfig, phase: EventPhase) -> [EventNow; 1] {
    let event = &file.events[0];
    [EventNow {
        name: event.name.to_string(),
        phase,
        times: event.times,
        is_shuffled: true,
        run_off: None,
    }]
}

fn found(checkers: &Checkers) -> Vec<Invariant> {
    let violations = checkers.violations().iter();
    violations.map(|violation| violation.promise).collect()
}

#[test]
fn the_plan_says_which_limits_hold_when() {
    let file = file();
    for (seconds, expected) in [
        (999, (50, 50)),
        (1_000, (5, 5)),
        (1_149, (5, 5)),
        (1_150, (9, 5)),
        (1_200, (9, 5)),
    ] {
        let wall = at(seconds);
        let found = timetable::limits(&file, |event| timetable::phase(event, wall), wall);
        let found = (found.total_active_users, found.new_users_per_minute);
        assert_eq!(found, expected, "{seconds}");
    }
}

#[test]
fn nobody_may_enter_between_prequeue_and_start() {
    let file = file();
    for (seconds, expected) in [
        (990, 0),
        (1_001, 0),
        (1_010, 1),
        (1_097, 1),
        (1_099, 0),
        (1_110, 0),
    ] {
        let mut checkers = checkers();
        checkers.check_not_held(&node(&file, seconds), at(seconds));
        assert_eq!(
            found(&checkers),
            vec![Invariant::Held; expected],
            "{seconds}"
        );
    }
    // The node may know that it has started elsewhere.
    let mut checkers = checkers();
    let begun = shown(&file, EventPhase::Running);
    let other = ScheduledNode {
        begun: &begun,
        node: 1,
        ..node(&file, 1_100)
    };
    checkers.check_phases(&other, at(1_050));
    checkers.check_not_held(&node(&file, 1_050), at(1_050));
    assert_eq!(found(&checkers), []);
}

#[test]
fn a_phase_that_goes_back_is_noticed() {
    let file = file();
    let mut checkers = checkers();
    let [running, prequeue] =
        [EventPhase::Running, EventPhase::Prequeue].map(|phase| shown(&file, phase));
    let mut check = |begun: &[EventNow], incarnation, is_steady, expected| {
        let before = checkers.violation_count();
        let seconds = if begun == running { 1_110 } else { 1_050 };
        let node = ScheduledNode {
            begun,
            incarnation,
            is_steady,
            ..node(&file, seconds)
        };
        checkers.check_phases(&node, at(1_110));
        assert_eq!(checkers.violation_count() - before, expected);
    };
    check(&running, 0, false, 0);
    check(&prequeue, 0, true, 0);
    check(&running, 0, true, 0);
    check(&prequeue, 0, true, 1);
    check(&[], 0, true, 1);
    // Another process may not know yet.
    check(&prequeue, 1, true, 0);
}

#[test]
fn limits_in_force_rise_with_the_last_node_and_fall_with_the_last_node() {
    let mut ceiling = Ceiling::default();
    let mut update = |of_nodes: [u32; 2], leases: [bool; 2], is_calm| {
        for (node, of_node) in (0..).zip(of_nodes) {
            ceiling.set(node, limits(of_node));
        }
        let live = [(0, leases[0]), (1, leases[1])];
        ceiling.update(&live, is_calm).unwrap().total_active_users
    };
    assert_eq!(update([50, 50], [true; 2], true), 50);
    assert_eq!(update([5, 50], [true; 2], true), 50);
    assert_eq!(update([5, 5], [true; 2], true), 5);
    assert_eq!(update([50, 5], [true; 2], true), 5);
    assert_eq!(update([50, 5], [true, false], true), 50, "nobody counts it");
    assert_eq!(update([5, 5], [true; 2], true), 5);
    assert_eq!(update([50, 5], [true; 2], false), 50, "nobody may count it");
}

#[test]
fn a_draw_takes_those_of_the_prequeue_once() {
    let file = file();
    let running = node(&file, 1_110);
    let ranked = |number: u8, arrived_in, rank| Ranked {
        visitor: VisitorId([number; 16]),
        arrived_in: at(arrived_in),
        rank: at(rank),
    };
    for (arrived_in, rank, is_right) in [
        (900, 900, true),
        (900, 1_050, false),
        (1_050, 1_080, true),
        (1_050, 1_120, false),
        (1_110, 1_110, true),
        (1_110, 1_050, false),
    ] {
        let mut checkers = checkers();
        checkers.check_draw(&running, ranked(1, arrived_in, rank), at(1_110));
        let expected = vec![Invariant::Draw; usize::from(!is_right)];
        assert_eq!(found(&checkers), expected, "{arrived_in} {rank}");
    }
    let mut checkers = checkers();
    checkers.check_draw(&running, ranked(1, 1_050, 1_080), at(1_110));
    checkers.check_draw(&running, ranked(1, 1_050, 1_080), at(1_111));
    assert_eq!(found(&checkers), []);
    checkers.check_draw(&running, ranked(1, 1_050, 1_070), at(1_112));
    assert_eq!(found(&checkers), [Invariant::Draw]);
}

#[test]
fn a_queue_that_was_not_drawn_is_noticed() {
    let file = file();
    let running = node(&file, 1_110);
    for (is_drawn, expected) in [(false, 1), (true, 0)] {
        let mut checkers = checkers();
        for number in 0..12 {
            let arrived_in = at(1_010 + u64::from(number));
            let rank = if is_drawn && number == 3 {
                at(1_060)
            } else {
                arrived_in
            };
            let ranked = Ranked {
                visitor: VisitorId([number; 16]),
                arrived_in,
                rank,
            };
            checkers.check_draw(&running, ranked, at(1_110));
        }
        assert_eq!(found(&checkers), vec![Invariant::Draw; expected]);
    }
}

#[test]
fn nobody_passes_after_an_event_while_somebody_waits() {
    let file = file();
    let mut checkers = checkers();
    let wait = |checkers: &mut Checkers, seconds| {
        let response = WaitResponse {
            visitor: VisitorId([1; 16]),
            interval: DurationMs::from_secs(30),
            is_copy: false,
            node: 0,
            data_center: 0,
        };
        checkers.handle_wait(&response, at(seconds));
    };
    wait(&mut checkers, 1_190);
    wait(&mut checkers, 1_215);
    checkers.handle_disturbance(at(2_000));
    checkers.check_run_off(&node(&file, 1_100), at(1_220));
    assert_eq!(found(&checkers), [], "the event has not ended there");
    checkers.check_run_off(&node(&file, 1_220), at(1_220));
    assert_eq!(found(&checkers), [Invariant::RunOff]);
    checkers.handle_wait_over(VisitorId([1; 16]), false, at(1_221));
    checkers.check_run_off(&node(&file, 1_222), at(1_222));
    assert_eq!(checkers.violation_count(), 1);
}

#[test]
fn a_node_out_of_touch_may_let_pass_while_somebody_waits_elsewhere() {
    let file = file();
    let mut checkers = checkers();
    let response = WaitResponse {
        visitor: VisitorId([1; 16]),
        interval: DurationMs::from_secs(60),
        is_copy: false,
        node: 1,
        data_center: 0,
    };
    checkers.handle_wait(&response, at(1_190));
    checkers.handle_silence(at(1_220));
    checkers.check_run_off(&node(&file, 1_219), at(1_219));
    assert_eq!(found(&checkers), []);
    checkers.check_run_off(&node(&file, 1_220), at(1_220));
    assert_eq!(found(&checkers), [Invariant::RunOff]);
}
