//! Store requests of nodes with `leases`, and their growth with the number of visitors.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Effort;
use crate::arrivals::{Sheet, send};
use crate::deployment::{Deployment, RoomPlan, Size};

/// Results at one rate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// Planned new visitors per second, over all nodes; 0: the room is idle.
    pub(crate) per_second: u32,
    /// New visitors per second that got a response.
    pub(crate) answered_per_s: f64,
    pub(crate) queued: u64,
    /// Requests per second and node to the local store.
    pub(crate) local_per_node: f64,
    /// Requests per second and node to the global store.
    pub(crate) global_per_node: f64,
}

/// Measures the store requests.
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
    for &per_second in &effort.request_rates {
        rows.push(measure(&deployment, per_second, effort.request_block).await?);
    }
    deployment.stop().await;
    Ok(rows)
}

async fn measure(deployment: &Deployment, per_second: u32, lasts: Duration) -> anyhow::Result<Row> {
    let sheet = Arc::new(Mutex::new(Sheet::default()));
    let before = deployment.requests();
    let began = Instant::now();
    if per_second == 0 {
        tokio::time::sleep(lasts).await;
    } else {
        let plan = Effort::plan(per_second, lasts, 1);
        send(&deployment.rooms("leases"), plan, &sheet).await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let after = deployment.requests();
    let per_node = |requests: u64| requests as f64 / seconds / deployment.nodes.len() as f64;
    let sheet = sheet.lock();
    Ok(Row {
        per_second,
        answered_per_s: sheet.total() as f64 / seconds,
        queued: sheet.steady.queued,
        local_per_node: per_node(after.local - before.local),
        global_per_node: per_node(after.global - before.global),
    })
}
