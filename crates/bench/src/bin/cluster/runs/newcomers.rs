//! Added latency of new visitors by the allocation.
//!
//! Allocations take turns on the same nodes and servers, with the same visitors at the same times
//! and nodes. Each block begins after a pause, with a lead-in that is reported separately.

use std::sync::Arc;
use std::time::Duration;

use anteroom_room::allocation::{CounterKey, CounterScope};
use anteroom_room::time::Minute;
use anteroom_store::{CounterName, Store};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::{Effort, until_left_of_minute};
use crate::arrivals::{Outcomes, Plan, Sheet, send};
use crate::deployment::{Deployment, NO_LIMIT, RoomPlan, Size};
use crate::latency::{Durations, Quantiles};

/// Period of the measurements of the link.
const PROBE_PERIOD: Duration = Duration::from_millis(10);
/// Time on either side of the end of a minute.
const AROUND_MINUTE: Duration = Duration::from_secs(2);
const AROUND_MINUTE_PER_SECOND: u32 = 1_000;

/// Results of the measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Newcomers {
    /// Latency of a counter of the local store, when idle.
    pub(crate) local_idle: Quantiles,
    pub(crate) local_meanwhile: Quantiles,
    pub(crate) rows: Vec<Row>,
}

/// Situation of a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moment {
    /// Traffic is far below every limit, after the lead-in.
    Steady,
    /// Traffic begins: the lead-in.
    Begins,
    /// A minute ends, and with it the admissions leased for it.
    MinuteEnds,
    /// The room is full: seats become free all the time, and more visitors come than that.
    AtLimit,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) moment: Moment,
    pub(crate) allocation: &'static str,
    pub(crate) per_second: u32,
    pub(crate) took: Quantiles,
    pub(crate) admitted: u64,
    pub(crate) queued: u64,
}

impl Row {
    fn of(moment: Moment, allocation: &'static str, per_second: u32, outcomes: &Outcomes) -> Self {
        Self {
            moment,
            allocation,
            per_second,
            took: outcomes.took.quantiles(),
            admitted: outcomes.admitted,
            queued: outcomes.queued,
        }
    }
}

const ALLOCATIONS: [&str; 2] = ["counters", "leases"];

/// Measures the added latency.
pub(crate) async fn run(effort: &Effort, links: &Handle) -> anyhow::Result<Newcomers> {
    let full = |name: &str, allocation| RoomPlan {
        seats: effort.near_seats,
        session_s: 10,
        ..RoomPlan::endless(name, allocation)
    };
    let rooms = [
        RoomPlan::endless("counters", "counters"),
        RoomPlan::endless("leases", "leases"),
        full("full-counters", "counters"),
        full("full-leases", "leases"),
    ];
    assert!(effort.near_seats < NO_LIMIT, "it has to become full");
    let size = Size {
        data_centers: 2,
        nodes: effort.nodes,
        is_local_relayed: true,
    };
    let deployment = Deployment::start(size, &rooms, links).await?;
    let mut idle = Durations::default();
    // Without a pause it would be faster, as no thread would go to sleep.
    let mut ticks = tokio::time::interval(PROBE_PERIOD);
    for _ in 0..effort.link_tries {
        ticks.tick().await;
        idle.record(measure_link(&*deployment.probes[0]).await?);
    }
    let block_s = effort.block.as_secs_f64() * f64::from(effort.rounds) * 1.2;
    let visitors: f64 = effort.rates.iter().map(|&rate| f64::from(rate)).sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some thousands"
    )]
    let visitors = (visitors * block_s) as u32;
    let history = effort.make_history(&deployment, visitors).await?;
    let mut rows = vec![minute_ends(effort, &deployment).await?];
    if let Some(history) = history {
        history.wait_until_known().await;
    }
    let meanwhile = Arc::new(Mutex::new(Durations::default()));
    let probe = tokio::spawn(probe(
        Arc::clone(&deployment.probes[0]),
        Arc::clone(&meanwhile),
    ));
    rows.extend(in_turn(effort, &deployment).await?);
    probe.abort();
    rows.extend(at_limit(effort, &deployment).await?);
    deployment.stop().await;
    let local_meanwhile = meanwhile.lock().quantiles();
    Ok(Newcomers {
        local_idle: idle.quantiles(),
        local_meanwhile,
        rows,
    })
}

async fn minute_ends(effort: &Effort, deployment: &Deployment) -> anyhow::Result<Row> {
    let mut around = AROUND_MINUTE;
    if effort.has_history {
        // The start of traffic is another row.
        until_left_of_minute(around + effort.lead_in).await;
    } else {
        around = effort.block;
    }
    let plan = Plan {
        per_second: AROUND_MINUTE_PER_SECOND,
        lasts: effort.lead_in + around * 2,
        lead_in: effort.lead_in,
        seed: 99,
    };
    let sheet = Arc::new(Mutex::new(Sheet::default()));
    send(&deployment.rooms("leases"), plan, &sheet).await?;
    let steady = sheet.lock().steady.clone();
    Ok(Row::of(
        Moment::MinuteEnds,
        "leases",
        plan.per_second,
        &steady,
    ))
}

/// Measures all rates with each allocation in turn, in each round.
async fn in_turn(effort: &Effort, deployment: &Deployment) -> anyhow::Result<Vec<Row>> {
    let cells = ALLOCATIONS.iter().flat_map(|&allocation| {
        let rates = effort.rates.iter();
        rates.map(move |&per_second| (allocation, per_second))
    });
    let cells: Vec<_> = cells
        .map(|cell| (cell, Arc::new(Mutex::new(Sheet::default()))))
        .collect();
    for round in 0..effort.rounds {
        for &per_second in &effort.rates {
            for ((allocation, _), sheet) in
                cells.iter().filter(|((_, rate), _)| *rate == per_second)
            {
                let plan = Plan {
                    per_second,
                    lasts: effort.block,
                    lead_in: effort.lead_in,
                    seed: u64::from(round) + 1,
                };
                send(&deployment.rooms(allocation), plan, sheet).await?;
            }
        }
    }
    let rows_at = |moment: Moment| {
        cells.iter().map(move |((allocation, per_second), sheet)| {
            let sheet = sheet.lock();
            let outcomes = match moment {
                Moment::Begins => &sheet.early,
                _ => &sheet.steady,
            };
            Row::of(moment, allocation, *per_second, outcomes)
        })
    };
    Ok(rows_at(Moment::Steady)
        .chain(rows_at(Moment::Begins))
        .collect())
}

/// Measures both full rooms at the same time: neither may empty while the other one is measured.
async fn at_limit(effort: &Effort, deployment: &Deployment) -> anyhow::Result<Vec<Row>> {
    let plan = Plan {
        per_second: effort.near_per_second,
        lasts: effort.near_fill + effort.block * effort.rounds,
        lead_in: effort.near_fill,
        seed: 77,
    };
    let sheets = [(); 2].map(|()| Arc::new(Mutex::new(Sheet::default())));
    let rooms = ["full-counters", "full-leases"].map(|name| deployment.rooms(name));
    let (counters, leases) = tokio::join!(
        send(&rooms[0], plan, &sheets[0]),
        send(&rooms[1], plan, &sheets[1])
    );
    counters.and(leases)?;
    let rows = ALLOCATIONS.iter().zip(&sheets).map(|(allocation, sheet)| {
        let sheet = sheet.lock();
        Row::of(Moment::AtLimit, allocation, plan.per_second, &sheet.steady)
    });
    Ok(rows.collect())
}

async fn probe(store: Arc<dyn Store>, took: Arc<Mutex<Durations>>) {
    let mut ticks = tokio::time::interval(PROBE_PERIOD);
    loop {
        ticks.tick().await;
        if let Ok(once) = measure_link(&*store).await {
            took.lock().record(once);
        }
    }
}

/// Measures the store request that a visitor of `counters` waits for.
async fn measure_link(store: &dyn Store) -> anyhow::Result<Duration> {
    let name = CounterName {
        room: "probe".to_owned(),
        key: CounterKey {
            scope: CounterScope::Anywhere,
            minute: Minute(0),
        },
    };
    let began = Instant::now();
    store.take_number(&name).await?;
    Ok(began.elapsed())
}
