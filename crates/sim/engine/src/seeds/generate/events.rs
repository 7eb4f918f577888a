//! Scheduled events of a seed: a prequeue, a start and an end within minutes, and around each of
//! them what can go wrong with clocks, processes, stores and files.
//!
//! Draws come from a stream of their own, so that everything else of other seeds stays as it was.

use anteroom_config::{EventName, EventStep, EventValues, RoomEvent};
use anteroom_room::event::EventTimes;
use anteroom_room::rules::{Limits, QueueingMethod};
use anteroom_room::time::DurationMs;

use super::faults::keep_a_witness;
use super::shape::limits;
use crate::rng::{Draw, Purpose, SimRng};
use crate::scenario::model::{
    Arrivals, EventChange, EventRef, FaultKind, FaultPlan, NodeRef, RatePoint, Scenario, StoreRef,
};

/// Share of the seeds with an event.
const SHARE: f64 = 0.15;
/// Longest time from the last edge to the end of a run: a room without visitors lets everybody pass
/// after a minute.
const AFTER_END: DurationMs = DurationMs::from_secs(90);
const EVENT: EventRef = EventRef { room: 0, event: 0 };

/// Edges of an event, from the start of the run.
#[derive(Clone, Copy)]
struct Edges {
    prequeue: DurationMs,
    start: DurationMs,
    end: DurationMs,
}

/// Returns the scenario with an event, in a share of the seeds, and as it is in the others.
pub(super) fn schedule(scenario: Scenario) -> Scenario {
    let mut rng = SimRng::new(scenario.seed, Purpose::Events);
    if !rng.chance(SHARE) {
        return scenario;
    }
    let rng = &mut rng;
    let prequeue = rng.between(DurationMs::from_secs(5), DurationMs::from_secs(30));
    let start = prequeue + rng.between(DurationMs::from_secs(10), DurationMs::from_secs(30));
    let end = start + rng.between(DurationMs::from_secs(30), DurationMs::from_secs(70));
    let edges = Edges {
        prequeue,
        start,
        end,
    };
    let mut scenario = scenario;
    scenario.length = end + AFTER_END;
    let starts_at = scenario.starts_at;
    let room = &mut scenario.rooms[0];
    (room.rules.opens_at, room.rules.draw) = (None, false);
    room.rules.session_duration = rng.between(DurationMs::from_secs(3), DurationMs::from_secs(15));
    room.rules.session_renewal = true;
    room.rules.queueing_method = match rng.below(4) {
        0 | 1 => QueueingMethod::Passthrough,
        2 => QueueingMethod::Fifo,
        _ => QueueingMethod::Random,
    };
    let is_shuffled = rng.chance(0.5);
    let has_prequeue = is_shuffled || rng.chance(0.7);
    let times = EventTimes {
        prequeue_at: starts_at + if has_prequeue { prequeue } else { start },
        starts_at: starts_at + start,
        ends_at: rng.chance(0.9).then_some(starts_at + end),
    };
    let mut event = event(rng, times, is_shuffled);
    if room.rules.queueing_method == QueueingMethod::Passthrough {
        event.values.queueing_method = Some(QueueingMethod::Fifo);
        event.values.limits.get_or_insert_with(|| limits(rng));
    }
    let of_event = event.values.limits.unwrap_or(room.rules.limits);
    room.events = vec![event];
    room.arrivals = vec![arrivals(rng, edges, of_event, scenario.length)];
    room.behaviour.pages = 1.0 + rng.unit() * 4.0;
    room.behaviour.patience = rng.chance(0.2).then_some(DurationMs::from_secs(40));
    room.behaviour.think_time = rng.between(DurationMs(300), DurationMs(2_000));
    let is_mild = rng.chance(0.4);
    scenario.faults.retain(|fault| {
        // Wrong clocks stay for the whole run; other faults of the seed would hide what goes wrong
        // at the edges.
        let is_clock = matches!(fault.kind, FaultKind::NodeClockIsOff { .. });
        is_clock || (is_mild && fault.at < scenario.length)
    });
    for edge in [edges.prequeue, edges.start, edges.end] {
        if rng.chance(0.5) {
            at_edge(rng, edge, &mut scenario);
        }
    }
    if rng.chance(0.25) {
        let fault = file_changes(rng, edges, &scenario);
        scenario.faults.push(fault);
    }
    keep_a_witness(&mut scenario.faults);
    scenario.faults.sort_by_key(|fault| fault.at);
    scenario
}

fn event(rng: &mut SimRng, times: EventTimes, is_shuffled: bool) -> RoomEvent {
    let mut after = DurationMs::ZERO;
    let steps = (0..rng.below(3)).map(|_| {
        after = after + rng.between(DurationMs::from_secs(5), DurationMs::from_secs(15));
        let Limits {
            total_active_users,
            new_users_per_minute,
        } = limits(rng);
        EventStep {
            after,
            total_active_users: rng.chance(0.6).then_some(total_active_users),
            new_users_per_minute: Some(new_users_per_minute),
        }
    });
    let steps: Vec<EventStep> = steps.collect();
    let queueing_method = match rng.below(4) {
        0 if !is_shuffled => Some(QueueingMethod::Random),
        0..3 => Some(QueueingMethod::Fifo),
        _ => None,
    };
    RoomEvent {
        name: EventName::new("sale").expect("it is a name"),
        description: String::new(),
        is_suspended: false,
        times,
        is_shuffled,
        values: EventValues {
            limits: rng.chance(0.8).then(|| limits(rng)),
            queueing_method,
            ..EventValues::default()
        },
        steps,
    }
}

/// Returns visitors who gather before the start, and some until the end of the run.
fn arrivals(rng: &mut SimRng, edges: Edges, of_event: Limits, length: DurationMs) -> Arrivals {
    let wanted = f64::from(of_event.total_active_users) * (1.0 + rng.unit() * 3.0);
    let gathering = edges.start.less(edges.prequeue).0 as f64 / 1e3;
    let rush = (wanted / gathering).clamp(0.3, 2.0);
    let later = 0.1 + rng.unit() * 0.4;
    let point = |at, per_second| RatePoint { at, per_second };
    Arrivals {
        data_center: None,
        points: vec![
            point(DurationMs::ZERO, 0.2),
            point(edges.prequeue, 0.4),
            point(edges.prequeue, rush),
            point(edges.start, rush),
            point(edges.start, later),
            point(length, later),
        ],
    }
}

/// Adds what goes wrong around an edge.
fn at_edge(rng: &mut SimRng, edge: DurationMs, scenario: &mut Scenario) {
    let second = DurationMs::from_secs(1);
    let before = |rng: &mut SimRng| edge.less(rng.between(DurationMs::ZERO, second.times(3)));
    let nodes = nodes_of(scenario);
    let node = nodes[rng.below(u32::try_from(nodes.len()).unwrap_or(1)) as usize];
    let mut plan = |at, kind| scenario.faults.push(FaultPlan { at, kind });
    match rng.below(8) {
        // A clock that steps over the edge, back or forward, and is set right later.
        0 | 1 => {
            let by = rng.between(second.times(2), second.times(60));
            let by_ms = i64::try_from(by.0).unwrap_or(0);
            let by_ms = if rng.chance(0.5) { by_ms } else { -by_ms };
            let at = edge.less(second.times(5)) + rng.between(DurationMs::ZERO, second.times(10));
            let affected = if rng.chance(0.3) { nodes } else { vec![node] };
            let back_at = at + rng.between(second.times(2), second.times(30));
            for node in affected {
                plan(at, FaultKind::NodeWallClockSteps { node, by_ms });
                let by_ms = -by_ms;
                plan(back_at, FaultKind::NodeWallClockSteps { node, by_ms });
            }
        }
        // Nodes that restart at the edge, one or all.
        2 | 3 => {
            let at = before(rng);
            let after = rng.between(DurationMs(200), second.times(5));
            let affected = if rng.chance(0.5) { nodes } else { vec![node] };
            let kind = |node| match after.0 % 2 {
                0 => FaultKind::Crash { node, after },
                _ => FaultKind::Restart { node, after },
            };
            affected.into_iter().for_each(|node| plan(at, kind(node)));
        }
        // An edge that nobody was there for.
        4 => {
            let at = before(rng);
            let lasts = edge.less(at) + rng.between(second, second.times(15));
            for node in nodes {
                let apart = rng.between(DurationMs::ZERO, second.times(3));
                let after = lasts + apart;
                plan(at, FaultKind::Crash { node, after });
            }
        }
        // A store that loses its memory around the edge.
        5 | 6 => {
            let at = before(rng) + rng.between(DurationMs::ZERO, second.times(3));
            let store = if rng.chance(0.6) {
                StoreRef::Global
            } else {
                StoreRef::Local(node.data_center)
            };
            plan(at, FaultKind::StoreWiped { store });
            if store == StoreRef::Global && rng.chance(0.5) {
                // All nodes but a witness forget with it whom they counted.
                let after = rng.between(DurationMs(200), second.times(2));
                for node in nodes {
                    let apart = rng.between(DurationMs::ZERO, DurationMs(400));
                    let at = (at + apart).less(after);
                    plan(at, FaultKind::Crash { node, after });
                }
            }
        }
        // A node that stands still over the edge.
        _ => {
            let at = before(rng);
            let lasts = rng.between(second, second.times(20));
            plan(at, FaultKind::Pause { node, lasts });
        }
    }
}

fn nodes_of(scenario: &Scenario) -> Vec<NodeRef> {
    let plans = scenario.data_centers.iter().enumerate();
    let nodes = plans.flat_map(|(data_center, plan)| {
        (0..plan.nodes as usize).map(move |node| NodeRef { data_center, node })
    });
    nodes.collect()
}

/// Returns a change of the event in the files, one node after the other.
fn file_changes(rng: &mut SimRng, edges: Edges, scenario: &Scenario) -> FaultPlan {
    let at = rng.between(edges.prequeue, edges.end);
    let within = rng.between(DurationMs::ZERO, DurationMs::from_secs(5));
    let ends_at = scenario.rooms[0].events[0].times.ends_at;
    let change = match ends_at {
        Some(ends_at) if rng.chance(0.4) => {
            // The event takes longer.
            let more = rng.between(DurationMs::from_secs(5), DurationMs::from_secs(20));
            EventChange {
                ends_at: Some(ends_at + more),
                ..EventChange::default()
            }
        }
        _ => EventChange {
            limits: Some(limits(rng)),
            ..EventChange::default()
        },
    };
    let kind = FaultKind::Event {
        event: EVENT,
        change,
        within,
    };
    FaultPlan { at, kind }
}
