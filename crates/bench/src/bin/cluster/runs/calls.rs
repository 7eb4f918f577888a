//! How often do nodes call their stores, with `leases`, and does that grow with visitors?

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Effort;
use crate::crowd::{Sheet, send};
use crate::deployment::{Deployment, RoomPlan, Size};

/// What was measured at one rate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// New visitors a second that were planned, all nodes together; 0: the room is idle.
    pub(crate) per_second: u32,
    /// New visitors a second that were answered.
    pub(crate) answered_per_s: f64,
    pub(crate) queued: u64,
    /// Calls a second and node to the store of the data center.
    pub(crate) local_per_node: f64,
    /// Calls a second and node to the global store.
    pub(crate) world_per_node: f64,
}

/// Measures.
pub(crate) async fn run(effort: &Effort, links: &Handle) -> anyhow::Result<Vec<Row>> {
    let size = Size {
        data_centers: 2,
        nodes: effort.nodes,
        is_local_relayed: true,
    };
    let rooms = [RoomPlan::endless("leases", "leases")];
    let deployment = Deployment::start(size, &rooms, links).await?;
    tokio::time::sleep(effort.lead_in).await;
    let mut rows = vec![measure(&deployment, 0, effort.idle).await?];
    for &per_second in &effort.call_rates {
        rows.push(measure(&deployment, per_second, effort.call_block).await?);
    }
    deployment.stop().await;
    Ok(rows)
}

async fn measure(deployment: &Deployment, per_second: u32, lasts: Duration) -> anyhow::Result<Row> {
    let sheet = Arc::new(Mutex::new(Sheet::default()));
    let before = deployment.calls();
    let began = Instant::now();
    if per_second == 0 {
        tokio::time::sleep(lasts).await;
    } else {
        let plan = Effort::plan(per_second, lasts, 1);
        send(&deployment.rooms("leases"), plan, &sheet).await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let after = deployment.calls();
    let per_node = |calls: u64| calls as f64 / seconds / deployment.nodes.len() as f64;
    let sheet = sheet.lock();
    Ok(Row {
        per_second,
        answered_per_s: sheet.total() as f64 / seconds,
        queued: sheet.steady.queued,
        local_per_node: per_node(after.local - before.local),
        world_per_node: per_node(after.world - before.world),
    })
}
