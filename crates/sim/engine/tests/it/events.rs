//! Scheduled events on an evening where clocks, processes and stores fail around their edges.
//!
//! The seeds reach such schedules by chance. Here each has a name, and the numbers that it must
//! keep.

use anteroom_config::{EventName, EventStep, EventValues, RoomEvent};
use anteroom_room::event::{EventPhase, EventTimes};
use anteroom_room::rules::{AllocationKind, Limits, QueueingMethod, Rules};
use anteroom_room::store::Durability;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_sim::outcome::Outcome;
use anteroom_sim::run;
use anteroom_sim::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, EventChange, EventRef, FaultKind, FaultPlan,
    NodeRef, RatePoint, RoomPlan, Scenario, StoreRef,
};

const STARTS_AT: Timestamp = Timestamp(1_694_432_730_000);
const PREQUEUE: u64 = 60;
const START: u64 = 120;
const END: u64 = 240;
const FIRST: NodeRef = NodeRef {
    data_center: 0,
    node: 0,
};

const fn secs(seconds: u64) -> DurationMs {
    DurationMs::from_secs(seconds)
}

const fn limits(total_active_users: u32) -> Limits {
    Limits {
        total_active_users,
        new_users_per_minute: 600,
    }
}

/// Returns a drawn sale of two minutes with five seats, and eight in its second half.
fn sale() -> RoomEvent {
    let at = |seconds| STARTS_AT + secs(seconds);
    RoomEvent {
        name: EventName::new("sale").expect("it is a name"),
        description: String::new(),
        is_suspended: false,
        times: EventTimes {
            prequeue_at: at(PREQUEUE),
            starts_at: at(START),
            ends_at: Some(at(END)),
        },
        is_shuffled: true,
        values: EventValues {
            limits: Some(limits(5)),
            queueing_method: Some(QueueingMethod::Fifo),
            ..EventValues::default()
        },
        steps: vec![EventStep {
            after: secs(60),
            total_active_users: Some(8),
            new_users_per_minute: None,
        }],
    }
}

/// Returns two data centers of two nodes, in a room that otherwise lets everybody pass. More
/// visitors gather and come than the sale admits, until a minute before the end of the run.
fn evening() -> Scenario {
    let delay = |from, to| Delay {
        from: DurationMs(from),
        to: DurationMs(to),
    };
    let data_center = |name: &str| DataCenterPlan {
        name: name.to_owned(),
        nodes: 2,
        share: 1.0,
        to_store: delay(0, 2),
        to_global: delay(20, 40),
    };
    let point = |seconds, per_second| RatePoint {
        at: secs(seconds),
        per_second,
    };
    let behaviour = Behaviour {
        pages: 3.0,
        think_time: secs(2),
        parallel_requests: 0,
        second_tab: 0.0,
        patience: None,
        no_shows: 0.0,
        away: 0.0,
        throttled: 0.0,
        changes_node: 0.2,
        changes_data_center: 0.0,
        without_cookies: 0.0,
        log_out: 0.0,
        replays: 0.0,
    };
    Scenario {
        name: "evening".to_owned(),
        about: String::new(),
        seed: 5,
        starts_at: STARTS_AT,
        length: secs(480),
        sample_every: secs(1),
        global_lease: secs(20),
        durability: Durability::Unknown,
        compare: Vec::new(),
        rooms: vec![RoomPlan {
            name: "shop".to_owned(),
            rules: Rules {
                limits: limits(50),
                session_duration: secs(10),
                queueing_method: QueueingMethod::Passthrough,
                ..Rules::default()
            },
            events: vec![sale()],
            arrivals: vec![Arrivals {
                data_center: None,
                points: vec![
                    point(PREQUEUE, 0.6),
                    point(START, 0.6),
                    point(START, 0.4),
                    point(END, 0.4),
                ],
            }],
            behaviour,
        }],
        data_centers: vec![data_center("one"), data_center("two")],
        faults: Vec::new(),
    }
}

fn all_nodes() -> impl Iterator<Item = NodeRef> {
    (0..4).map(|number| NodeRef {
        data_center: number / 2,
        node: number % 2,
    })
}

/// Runs the evening with faults at these seconds. Nothing may be violated.
fn with(faults: impl IntoIterator<Item = (u64, FaultKind)>) -> Outcome {
    let faults = faults.into_iter();
    let scenario = Scenario {
        faults: faults
            .map(|(at, kind)| FaultPlan { at: secs(at), kind })
            .collect(),
        ..evening()
    };
    let outcome = run(&scenario, 0, AllocationKind::Leases, &mut |_| {});
    assert_eq!(outcome.violations, []);
    assert!(outcome.stats.admitted > 50, "{}", outcome.stats.admitted);
    outcome
}

/// Returns when phases were reached, in seconds.
fn reached(outcome: &Outcome) -> Vec<(EventPhase, u64)> {
    let marks = outcome.events.iter();
    marks.map(|mark| (mark.phase, mark.at_ms / 1_000)).collect()
}

/// Returns the most active visitors between two times.
fn most_inside(outcome: &Outcome, from: u64, until: u64) -> u32 {
    let samples = outcome.samples.iter();
    let between = samples.filter(|sample| (from * 1_000..until * 1_000).contains(&sample.at_ms));
    between.map(|sample| sample.inside).max().unwrap_or(0)
}

#[test]
fn an_event_begins_steps_and_ends_at_its_times() {
    let outcome = with([]);
    let expected = [
        (EventPhase::Prequeue, PREQUEUE),
        (EventPhase::Running, START),
        (EventPhase::Over, END),
    ];
    assert_eq!(reached(&outcome), expected);
    // Those who passed before the prequeue have left.
    assert_eq!(most_inside(&outcome, 75, START), 0);
    assert_eq!(most_inside(&outcome, START, START + 60), 5);
    assert_eq!(most_inside(&outcome, START + 60, END), 8);
}

/// Returns the second in which somebody waits for the last time.
fn last_wait(outcome: &Outcome) -> u64 {
    let waiting = outcome.samples.iter().filter(|sample| sample.waiting > 0);
    let last = waiting.map(|sample| sample.at_ms / 1_000).max();
    last.unwrap_or(0)
}

#[test]
fn those_who_wait_at_the_end_are_no_stampede() {
    let outcome = with([]);
    let last = last_wait(&outcome);
    assert!(last > END + 20, "the last one waits at {last} s");
    assert_eq!(most_inside(&outcome, END, last), 8);
}

/// A node that starts finds no event in its file, and the others still have a queue.
#[test]
fn those_who_wait_when_the_event_is_removed_are_no_stampede_at_a_node_that_starts() {
    let removal = FaultKind::Event {
        event: EventRef { room: 0, event: 0 },
        change: EventChange {
            is_suspended: Some(true),
            ..EventChange::default()
        },
        within: secs(2),
    };
    let after = secs(1);
    let crash = |node| (END - 25, FaultKind::Crash { node, after });
    for starting in [1, 4] {
        let crashes = all_nodes().take(starting).map(crash);
        let outcome = with(crashes.chain([(END - 30, removal)]));
        let last = last_wait(&outcome);
        assert!(last > END, "the last one waits at {last} s");
        assert_eq!(most_inside(&outcome, END - 20, last), 8);
    }
}

#[test]
fn a_start_that_nobody_was_there_for_takes_place_with_the_first_node() {
    let crashes = all_nodes().map(|node| {
        let after = secs(if node == FIRST { 20 } else { 40 });
        (START - 5, FaultKind::Crash { node, after })
    });
    let outcome = with(crashes);
    assert_eq!(reached(&outcome)[1], (EventPhase::Running, START + 15));
}

#[test]
fn clocks_that_step_back_over_the_start_do_not_close_the_doors() {
    let steps = all_nodes().map(|node| {
        let by_ms = -100_000;
        (START + 20, FaultKind::NodeWallClockSteps { node, by_ms })
    });
    let outcome = with(steps);
    // Steps of the limits follow the clock, and the end does.
    assert_eq!(most_inside(&outcome, START + 30, END + 20), 5);
    assert_eq!(reached(&outcome)[2], (EventPhase::Over, END + 100));
}

#[test]
fn a_process_that_starts_with_a_clock_from_before_the_start_learns_of_it() {
    let by_ms = -100_000;
    let node = FIRST;
    let after = secs(2);
    with([
        (START + 20, FaultKind::NodeWallClockSteps { node, by_ms }),
        (START + 25, FaultKind::Crash { node, after }),
    ]);
}

#[test]
fn a_clock_that_steps_forward_starts_the_event_at_its_node_only() {
    let node = FIRST;
    let step = |by_ms| FaultKind::NodeWallClockSteps { node, by_ms };
    let outcome = with([(START - 30, step(60_000)), (START - 10, step(-60_000))]);
    // The others still hold, and so does this one again.
    assert!(most_inside(&outcome, START - 30, START) <= 5);
    assert_eq!(outcome.events.len(), 3);
}

#[test]
fn phases_come_back_to_a_store_that_lost_them() {
    let store = StoreRef::Global;
    let outcome = with([(START + 3, FaultKind::StoreWiped { store })]);
    assert_eq!(reached(&outcome).len(), 3);
}

#[test]
fn a_file_changes_the_event_in_the_middle() {
    let event = EventRef { room: 0, event: 0 };
    let change = EventChange {
        ends_at: Some(STARTS_AT + secs(END + 60)),
        ..EventChange::default()
    };
    let within = secs(5);
    let fault = FaultKind::Event {
        event,
        change,
        within,
    };
    let outcome = with([(START + 30, fault)]);
    let over = reached(&outcome)
        .into_iter()
        .find(|(phase, _)| *phase == EventPhase::Over);
    assert_eq!(over, Some((EventPhase::Over, END + 60)));
}
