//! Scenarios that measure the simulator: large deployments, calm for a benchmark and stormy for a
//! proof.
//!
//! They have no faults; the seeds cover those.

use anteroom_room::ledger::LeaseTerms;
use anteroom_room::rules::{AllocationKind, Limits, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_sim::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, RatePoint, RoomPlan, Scenario,
};

/// Size of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Number of data centers.
    pub(crate) data_centers: u32,
    /// Nodes per data center.
    pub(crate) nodes: u32,
    /// Number of visitors, on average over all seeds.
    pub(crate) visitors: u32,
    /// Virtual time in minutes.
    pub(crate) minutes: u32,
}

/// Start in the middle of a calendar minute, so that minutes change early.
const STARTS_AT: Timestamp = Timestamp(1_694_432_754_000);

/// Returns a scenario with many visitors at many nodes, the same everywhere; slightly more come
/// than the limits admit. Each node has the same work at every size, so that only the cost of a
/// large deployment differs.
pub(crate) fn even(size: Size) -> Scenario {
    let length = DurationMs::from_secs(u64::from(size.minutes) * 60);
    let per_minute = (size.visitors / size.minutes).max(1);
    let per_second = f64::from(size.visitors) / f64::from(size.minutes) / 60.0;
    let point = |at| RatePoint { at, per_second };
    Scenario {
        name: "even".to_owned(),
        sample_every: DurationMs::from_secs(60),
        length,
        rooms: vec![RoomPlan {
            name: "shop".to_owned(),
            rules: rules(Limits {
                total_active_users: per_minute.saturating_mul(4),
                new_users_per_minute: per_minute - per_minute / 10,
            }),
            events: Vec::new(),
            arrivals: vec![Arrivals {
                data_center: None,
                points: vec![point(DurationMs::ZERO), point(length)],
            }],
            behaviour: behaviour(5.0, DurationMs::from_secs(600)),
        }],
        data_centers: (0..size.data_centers)
            .map(|index| data_center(index, size.nodes, 1.0, far(20, 40)))
            .collect(),
        ..nothing()
    }
}

/// Returns a sale on every continent. Few data centers are large and many are small: the first has
/// 31 times the visitors of the three hundredth. Some are near the global store and some are far.
/// The room fills to 94 %. Then nearly twice as many visitors come for a twelfth of the time, and
/// up to a million wait (of 20 million visitors in an hour). Then few come, until the queue is
/// empty.
pub(crate) fn global_sale(size: Size) -> Scenario {
    let length = DurationMs::from_secs(u64::from(size.minutes) * 60);
    let mean = f64::from(size.visitors) / length.0 as f64 * 1e3;
    let point = |sixtieths: u64, times: f64| RatePoint {
        at: DurationMs(length.0 * sixtieths / 60),
        per_second: mean * times,
    };
    // The average is the mean: 50 * 0.99 + 5 * 1.75 + 5 * 0.35 = 60.
    let points = vec![
        point(0, 0.99),
        point(18, 0.99),
        point(18, 1.75),
        point(23, 1.75),
        point(23, 0.35),
        point(28, 0.35),
        point(28, 0.99),
        point(60, 0.99),
    ];
    let per_minute = (size.visitors / size.minutes).max(1);
    Scenario {
        name: "world".to_owned(),
        // Often enough to see the peak of waiting visitors.
        sample_every: DurationMs::from_secs(10),
        length,
        rooms: vec![RoomPlan {
            name: "shop".to_owned(),
            rules: rules(Limits {
                // A visitor of three pages keeps its seat for 5.7 minutes on average: 40 s between
                // pages, and then the session. So 6 % more fit in than come on average.
                total_active_users: per_minute.saturating_mul(6),
                // Binds in the spike, until the seats do.
                new_users_per_minute: per_minute.saturating_add(per_minute / 5),
            }),
            events: Vec::new(),
            arrivals: vec![Arrivals {
                data_center: None,
                points,
            }],
            behaviour: behaviour(3.0, DurationMs::from_secs(1_800)),
        }],
        data_centers: (0..size.data_centers)
            .map(|index| {
                let away = 5 + u64::from(index % 10) * 12;
                let share = 1.0 / f64::from(10 + index);
                data_center(index, size.nodes, share, far(away, away + 15))
            })
            .collect(),
        ..nothing()
    }
}

/// Returns a scenario with what all plans share.
fn nothing() -> Scenario {
    Scenario {
        name: String::new(),
        about: String::new(),
        seed: 1,
        starts_at: STARTS_AT,
        length: DurationMs::ZERO,
        sample_every: DurationMs::ZERO,
        global_lease: LeaseTerms::ROOT.ttl,
        durability: anteroom_room::store::Durability::Unknown,
        compare: vec![AllocationKind::Leases],
        rooms: Vec::new(),
        data_centers: Vec::new(),
        faults: Vec::new(),
    }
}

fn rules(limits: Limits) -> Rules {
    Rules {
        limits,
        session_duration: DurationMs::from_secs(300),
        ..Rules::default()
    }
}

fn behaviour(pages: f64, patience: DurationMs) -> Behaviour {
    Behaviour {
        pages,
        think_time: DurationMs::from_secs(20),
        parallel_requests: 2,
        second_tab: 0.0,
        patience: Some(patience),
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

const fn far(from_ms: u64, to_ms: u64) -> Delay {
    Delay {
        from: DurationMs(from_ms),
        to: DurationMs(to_ms),
    }
}

fn data_center(index: u32, nodes: u32, share: f64, to_global: Delay) -> DataCenterPlan {
    DataCenterPlan {
        name: format!("dc{index}"),
        nodes,
        share,
        to_store: far(1, 2),
        to_global,
    }
}
