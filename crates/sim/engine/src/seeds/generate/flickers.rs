//! Stores of data centers that come back again and again without their last moments, in a busy
//! room: what a data center had just passed on to its nodes is in its pool once more.
//!
//! Draws come from a stream of their own, so that everything else of other seeds stays as it was.

use anteroom_room::rules::{Limits, QueueingMethod};
use anteroom_room::store::Durability;
use anteroom_room::time::DurationMs;

use crate::rng::{Draw, Purpose, SimRng};
use crate::scenario::model::{
    Arrivals, Behaviour, FaultKind, FaultPlan, RatePoint, Scenario, StoreRef,
};

/// Share of the seeds with several data centers in which their stores do so.
const SHARE: f64 = 0.04;
const LENGTH: DurationMs = DurationMs::from_secs(150);
/// Most that a store loses: grants of the last sync or two.
const LOSES: DurationMs = DurationMs(500);

/// Returns the scenario with such stores, in a share of the seeds, and as it is in the others.
pub(super) fn flicker(scenario: Scenario) -> Scenario {
    let mut rng = SimRng::new(scenario.seed, Purpose::Flickers);
    if scenario.data_centers.len() < 2 || !rng.chance(SHARE) {
        return scenario;
    }
    let mut scenario = Scenario {
        length: LENGTH,
        durability: Durability::LosesAtMost(LOSES + DurationMs(LOSES.0 / 16 + 10)),
        ..scenario
    };
    for plan in &mut scenario.data_centers {
        plan.nodes = 2 + rng.below(2);
    }
    let seats = 10 + rng.below(30);
    let session = rng.between(DurationMs::from_secs(5), DurationMs::from_secs(15));
    let room = &mut scenario.rooms[0];
    room.rules.limits = Limits {
        total_active_users: seats,
        new_users_per_minute: 100 + rng.below(500),
    };
    room.rules.session_duration = session;
    room.rules.queueing_method = QueueingMethod::Fifo;
    (room.rules.opens_at, room.rules.draw) = (None, false);
    let per_second = f64::from(seats) / session.0 as f64 * 1e3 * (0.8 + rng.unit() * 0.8);
    let points = [DurationMs::ZERO, LENGTH].map(|at| RatePoint { at, per_second });
    room.arrivals = vec![Arrivals {
        data_center: None,
        points: points.to_vec(),
    }];
    room.behaviour = Behaviour {
        pages: 1.0 + rng.unit() * 3.0,
        think_time: rng.between(DurationMs::from_secs(1), DurationMs::from_secs(4)),
        parallel_requests: 0,
        patience: Some(DurationMs::from_secs(10)),
        ..room.behaviour
    };
    scenario.faults = losses(&mut rng, scenario.data_centers.len());
    scenario
}

fn losses(rng: &mut SimRng, data_centers: usize) -> Vec<FaultPlan> {
    let mut at = rng.between(DurationMs::from_secs(6), DurationMs::from_secs(12));
    let mut faults = Vec::new();
    while at < LENGTH.less(DurationMs::from_secs(20)) {
        let data_center = rng.below(u32::try_from(data_centers).unwrap_or(1)) as usize;
        let store = StoreRef::Local(data_center);
        // A process and its log are quick to start again, and its nodes have hardly noticed.
        let lasts = rng.between(DurationMs(100), DurationMs(600));
        let last = rng.between(DurationMs(20), LOSES);
        let lost = FaultKind::StoreLosesWrites { store, last };
        let away = FaultKind::StoreDown { store, lasts };
        faults.extend([lost, away].map(|kind| FaultPlan { at, kind }));
        at = at + rng.between(DurationMs::from_secs(5), DurationMs::from_secs(14));
    }
    faults
}
