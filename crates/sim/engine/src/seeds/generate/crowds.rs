//! Crowds that wait: many visitors at once, whose requests reach any node, with refresh intervals
//! of one to sixty seconds, while nodes are killed and start.
//!
//! Draws come from a stream of their own, so that everything else of other seeds stays as it was.

use anteroom_room::rules::{Limits, QueueingMethod};
use anteroom_room::time::DurationMs;

use crate::rng::{Draw, Purpose, SimRng};
use crate::scenario::model::{
    Arrivals, Behaviour, FaultKind, FaultPlan, NodeRef, RatePoint, Scenario,
};

/// Share of the seeds in which many visitors wait.
const SHARE: f64 = 0.08;
/// Length of a run: time for several refreshes of the longest interval.
const LENGTH: DurationMs = DurationMs::from_secs(240);
/// Requests of waiting visitors per second: a run has few events.
const REQUESTS_PER_SECOND: u32 = 30;
/// Shortest time between two changes of nodes. Counts must be right some seconds after each.
const APART: DurationMs = DurationMs::from_secs(25);

/// Returns the scenario with many waiting visitors, in a share of the seeds, and as it is in the
/// others.
pub(super) fn gather(scenario: Scenario) -> Scenario {
    let mut rng = SimRng::new(scenario.seed, Purpose::Crowds);
    if !rng.chance(SHARE) {
        return scenario;
    }
    let mut scenario = Scenario {
        length: LENGTH,
        faults: Vec::new(),
        ..scenario
    };
    if rng.chance(0.7) {
        for plan in &mut scenario.data_centers {
            plan.nodes = plan.nodes.max(2 + rng.below(3));
        }
    }
    let changes_data_center = rng.chance(0.3);
    let room = &mut scenario.rooms[0];
    // Without an interval of its own each visitor has one by its position.
    let interval = [1, 1, 2, 2, 5, 10, 30, 60, 0, 0][rng.below(10) as usize];
    room.rules.refresh_interval = (interval > 0).then(|| DurationMs::from_secs(interval));
    room.rules.queueing_method = if rng.chance(0.9) {
        QueueingMethod::Fifo
    } else {
        QueueingMethod::Random
    };
    (room.rules.opens_at, room.rules.draw) = (None, false);
    room.rules.limits = Limits {
        total_active_users: 2 + rng.below(20),
        new_users_per_minute: 4 + rng.below(60),
    };
    let often = u32::try_from(interval).unwrap_or(1).clamp(1, 8);
    let crowd = (20 + rng.below(REQUESTS_PER_SECOND * often)).min(220);
    room.arrivals = vec![arrivals(&mut rng, crowd)];
    room.behaviour = Behaviour {
        pages: 1.0 + rng.unit() * 3.0,
        parallel_requests: 0,
        patience: rng.chance(0.3).then_some(DurationMs::from_secs(90)),
        no_shows: if rng.chance(0.2) { 0.2 } else { 0.0 },
        // Any node at each request, or one node for each visitor, or something between.
        changes_node: [1.0, 0.7, rng.unit(), 0.0][rng.below(4) as usize],
        changes_data_center: if changes_data_center { rng.unit() } else { 0.0 },
        replays: if rng.chance(0.3) { 0.3 } else { 0.0 },
        second_tab: if rng.chance(0.3) { 0.3 } else { 0.0 },
        without_cookies: 0.0,
        ..room.behaviour
    };
    scenario.faults = changes(&mut rng, &scenario);
    scenario
}

fn arrivals(rng: &mut SimRng, crowd: u32) -> Arrivals {
    let within = 3 + rng.below(15);
    let first = f64::from(crowd) / f64::from(within);
    let later = rng.unit() * 0.5;
    let point = |secs: u32, per_second| RatePoint {
        at: DurationMs::from_secs(secs.into()),
        per_second,
    };
    let end = RatePoint {
        at: LENGTH,
        per_second: later,
    };
    Arrivals {
        data_center: None,
        points: vec![
            point(0, first),
            point(within, first),
            point(within, later),
            end,
        ],
    }
}

/// Returns nodes that are killed or restarted, and start again after a while, as others.
fn changes(rng: &mut SimRng, scenario: &Scenario) -> Vec<FaultPlan> {
    let mut at = rng.between(DurationMs::from_secs(15), DurationMs::from_secs(40));
    let mut faults = Vec::new();
    for _ in 0..rng.below(4) {
        let data_centers = &scenario.data_centers;
        let data_center = rng.below(u32::try_from(data_centers.len()).unwrap_or(1)) as usize;
        let node = NodeRef {
            data_center,
            node: rng.below(data_centers[data_center].nodes) as usize,
        };
        let after = rng.between(DurationMs::from_secs(1), APART + APART);
        let kind = if rng.chance(0.7) {
            FaultKind::Crash { node, after }
        } else {
            FaultKind::Restart { node, after }
        };
        faults.push(FaultPlan { at, kind });
        at = at + rng.between(APART, APART + APART);
    }
    faults
}
