//! Run of a case: starts the deployment, sends the visitors, and examines their log.

use std::time::Duration;

use anteroom_config::time_text::rfc3339_millis;
use anteroom_demo::checker::Verdict;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_testkit::clock::now;
use anteroom_testkit::load::{NewcomerLog, NewcomerPlan};

use super::TruthFindings;
use super::cases::{FAR_OPENING, TruthCase};
use crate::cluster::Cluster;
use crate::machine::CpuTimes;
use crate::origin::ROOM;

/// Counter of a node: first ranges by how they came true.
const ANNOUNCED: &str = "anteroom_announced_waits_total";
/// More arrivals than visitors are planned, as their number depends on chance; the last of them do
/// not come.
const SPARE_PERCENT: u32 = 130;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run.
    pub case: TruthCase,
    /// Findings in the log of the visitors.
    pub findings: TruthFindings,
    /// Time of the opening, if the room was closed.
    pub opens_at: Option<Timestamp>,
    /// Count of the origin.
    pub verdict: Verdict,
    /// First ranges that were right, early and late, as the nodes count them.
    pub by_nodes: [u64; 3],
    /// Time from the first arrival to the end.
    pub lasted: Duration,
    /// Idle part of the machine's processors, in percent.
    pub idle: u64,
    /// All that the visitors sent and heard.
    pub log: NewcomerLog,
}

/// Runs a case on its own deployment. The same seed makes the same arrivals.
///
/// # Panics
///
/// If the deployment does not start.
pub async fn run(case: TruthCase, seed: u64) -> Outcome {
    let cluster = Cluster::start(case.setup()).await;
    cluster.lends_again().await;
    let opens_at = case.opens_after.map(|after| open_after(&cluster, after));
    let plan = plan(&case, seed);
    let (routes, nodes) = (cluster.routes(), cluster.all());
    let before = CpuTimes::now();
    let sending = tokio::spawn(async move { NewcomerLog::of(&routes, &nodes, &plan).await });
    let log = sending.await.expect("no visitor panics");
    let idle = CpuTimes::now().idle_since(before);
    let mut by_nodes = [0; 3];
    for at in cluster.all() {
        for (count, outcome) in by_nodes.iter_mut().zip(["right", "early", "late"]) {
            let label = format!(",outcome=\"{outcome}\"");
            *count += cluster.metric_of::<u64>(at, ANNOUNCED, &label).await;
        }
    }
    Outcome {
        findings: TruthFindings::of(&log),
        opens_at,
        verdict: cluster.origin().verdict(),
        by_nodes,
        lasted: log.ended_at,
        idle,
        log,
        case,
    }
}

/// Sets the opening of the room at all nodes, and returns its time.
fn open_after(cluster: &Cluster, after: Duration) -> Timestamp {
    let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    let opens_at = now() + DurationMs(after);
    let opening = rfc3339_millis(opens_at);
    for at in cluster.all() {
        let node = cluster.node(at);
        node.reload(|config| config.replace(FAR_OPENING, &opening));
    }
    opens_at
}

fn plan(case: &TruthCase, seed: u64) -> NewcomerPlan {
    let nodes = u32::try_from(case.setup().nodes).unwrap_or(u32::MAX);
    let millis = u32::try_from(case.come_within.as_millis()).unwrap_or(u32::MAX);
    let node_millis = millis.saturating_mul(nodes).max(1);
    NewcomerPlan {
        per_second_at_node: case.visitors.saturating_mul(1_000).div_ceil(node_millis),
        lasts: case.come_within * SPARE_PERCENT / 100,
        at_most: case.visitors as usize,
        goes_on: case.ends_within,
        stays: case.stays.clone(),
        think: case.think,
        room: ROOM.to_owned(),
        seed,
    }
}
