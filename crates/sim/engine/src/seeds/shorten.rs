//! A broken promise, told as shortly as it still happens.

use std::fmt::Write as _;

use anteroom_room::rules::AllocationKind;
use anteroom_room::time::Span;

use super::{breaks, generate, run_scenario, steps_max};
use crate::outcome::Violation;
use crate::run::Simulation;
use crate::scenario::model::{Behaviour, Scenario};

/// What happened in a seed, for a person: the world with everything left out that is not needed
/// to break the promise, and the last `lines` of what went on before it broke. For a seed that
/// breaks none, its end.
#[must_use]
pub fn explain(seed: u64, lines: usize) -> String {
    let scenario = generate::scenario(seed);
    match run_scenario(&scenario).violation {
        Some(violation) => {
            let (shortest, violation) = shorten(scenario, violation);
            tell(&shortest, Some(&violation), lines)
        }
        None => tell(&scenario, None, lines),
    }
}

/// Leaves out one thing after the other, as long as the same promise breaks.
fn shorten(mut scenario: Scenario, mut violation: Violation) -> (Scenario, Violation) {
    let promise = violation.promise;
    let mut attempt = |changed: Scenario, scenario: &mut Scenario| {
        let found = breaks(&changed, promise);
        if let Some(found) = found {
            *scenario = changed;
            violation = found;
            return true;
        }
        false
    };
    let mut at = 0;
    while at < scenario.faults.len() {
        let mut changed = scenario.clone();
        changed.faults.remove(at);
        if !attempt(changed, &mut scenario) {
            at += 1;
        }
    }
    for simpler in SIMPLER {
        let mut changed = scenario.clone();
        simpler(&mut changed.rooms[0].behaviour);
        if changed != scenario {
            attempt(changed, &mut scenario);
        }
    }
    for eighths in [4u64, 6] {
        let mut changed = scenario.clone();
        for point in &mut changed.rooms[0].arrivals[0].points {
            point.per_second *= eighths as f64 / 8.0;
        }
        attempt(changed, &mut scenario);
    }
    (scenario, violation)
}

/// Ways to make visitors do less.
const SIMPLER: &[fn(&mut Behaviour)] = &[
    |behaviour| behaviour.without_cookies = 0.0,
    |behaviour| behaviour.second_tab = 0.0,
    |behaviour| behaviour.no_shows = 0.0,
    |behaviour| behaviour.patience = None,
    |behaviour| behaviour.replays = 0.0,
    |behaviour| behaviour.log_out = 0.0,
    |behaviour| behaviour.changes_data_center = 0.0,
    |behaviour| behaviour.changes_node = 0.0,
    |behaviour| behaviour.parallel_requests = 0,
];

fn tell(scenario: &Scenario, violation: Option<&Violation>, lines: usize) -> String {
    let mut text = String::new();
    let room = &scenario.rooms[0];
    let limits = room.rules.limits;
    // Writing into a string cannot fail.
    let _ = writeln!(
        text,
        "{}: {} seats, {} a minute, sessions of {}, world lease {}",
        scenario.name,
        limits.total_active_users,
        limits.new_users_per_minute,
        room.rules.session_duration,
        scenario.world_lease,
    );
    for plan in &scenario.data_centers {
        let _ = writeln!(
            text,
            "  {}: {} nodes, {} to the world",
            plan.name, plan.nodes, plan.to_world.to
        );
    }
    let _ = writeln!(text, "  {:?}", room.behaviour);
    for fault in &scenario.faults {
        let _ = writeln!(text, "  at {}: {:?}", fault.at, fault.kind);
    }
    for line in trace(scenario, lines) {
        let _ = writeln!(text, "{line}");
    }
    match violation {
        Some(broken) => {
            let at = Span(broken.at_ms);
            let _ = writeln!(
                text,
                "broken at {at}: {} ({:?})",
                broken.seen, broken.promise
            );
        }
        None => {
            let _ = writeln!(text, "no promise is broken");
        }
    }
    text
}

/// The last lines of a run that stops where a promise breaks.
fn trace(scenario: &Scenario, lines: usize) -> Vec<String> {
    let simulation = Simulation::new(scenario, 0, AllocationKind::Leases);
    let mut simulation = simulation.with_trace(lines);
    while simulation.events() < steps_max(scenario) && simulation.judge().violation_count() == 0 {
        if !simulation.step() {
            break;
        }
    }
    let lines = simulation
        .trace()
        .into_iter()
        .flat_map(|trace| trace.lines());
    lines.map(str::to_owned).collect()
}
