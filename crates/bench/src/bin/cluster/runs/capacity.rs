//! Capacity of one Redis server: rooms under load times nodes at which the local store uses half a
//! core.
//!
//! Two sizes are measured with nodes and extrapolated linearly. Nodes take many times the CPU time
//! of the server, so one machine cannot run both at the extrapolated size. That size is checked
//! with requests alone: as many, for records of the same length, without decisions. The ledger of a
//! room has an entry per node, so the cost of a request depends on the number of nodes.

mod echo;

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;

use super::Effort;
use crate::arrivals::{Sheet, send};
use crate::deployment::{Deployment, RoomPlan, Size};

/// New visitors per second, room and node: enough that the room is never idle.
const PER_ROOM_AND_NODE: u32 = 8;
/// Target of the CPU use of a server, in cores.
const HALF_A_CORE: f64 = 0.5;
/// Least ratio of requests with many rooms to those with few; below it the machine did not keep up.
const KEPT_UP_MIN: f64 = 0.9;
/// Upper bound, in case the extrapolation is meaningless.
const ROOMS_MAX: f64 = 2_000.0;

/// Results with this number of nodes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Capacity {
    pub(crate) nodes: usize,
    /// Results of the two sizes.
    pub(crate) runs: [Run; 2],
    /// Extrapolation; `None` if this machine could not keep up with the larger size.
    pub(crate) beyond: Option<Beyond>,
}

/// Extrapolation of two runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Beyond {
    /// Rooms times nodes at half a core, by linear extrapolation.
    pub(crate) room_nodes: f64,
    /// Requests alone, at the larger size: shows how similar they are.
    pub(crate) echo_of_large: Run,
    /// Requests alone, at the extrapolated size.
    pub(crate) echo: Run,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) nodes: usize,
    pub(crate) rooms: usize,
    /// CPU seconds per second of the local store.
    pub(crate) local_cores: f64,
    /// CPU seconds per second of the global store, for this data center only.
    pub(crate) world_cores: f64,
    /// Requests to the local store per second, room and node. Fewer than with few rooms means that
    /// this machine could not keep up.
    pub(crate) calls: f64,
    pub(crate) queued: u64,
    /// Bytes of the first room's record, at the end.
    pub(crate) record_bytes: usize,
}

impl Run {
    pub(crate) fn room_nodes(&self) -> f64 {
        (self.rooms * self.nodes) as f64
    }

    /// Returns the CPU time of the local store per second, room and node, in microseconds.
    pub(crate) fn micros_per_room_node(&self) -> f64 {
        self.local_cores * 1e6 / self.room_nodes()
    }
}

/// Measures the capacity.
pub(crate) async fn run(effort: &Effort, links: &Handle) -> anyhow::Result<Vec<Capacity>> {
    let mut found = Vec::new();
    for &(nodes, [small, large]) in &effort.capacity {
        let runs = [
            measure(effort, nodes, small, links).await?,
            measure(effort, nodes, large, links).await?,
        ];
        let has_kept_up = runs[1].calls >= KEPT_UP_MIN * runs[0].calls;
        let beyond = if has_kept_up {
            Some(extrapolate(effort, &runs).await?)
        } else {
            None
        };
        found.push(Capacity {
            nodes,
            runs,
            beyond,
        });
    }
    Ok(found)
}

async fn extrapolate(effort: &Effort, [small, large]: &[Run; 2]) -> anyhow::Result<Beyond> {
    let room_nodes = room_nodes_at(HALF_A_CORE, small, large);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between one and some thousands"
    )]
    let rooms = (room_nodes / large.nodes as f64).clamp(1.0, ROOMS_MAX) as usize;
    let lasts = effort.capacity_block;
    Ok(Beyond {
        room_nodes,
        echo_of_large: echo::run(large, large.rooms, lasts).await?,
        echo: echo::run(large, rooms, lasts).await?,
    })
}

/// Returns the size at which the linear extrapolation of two runs reaches `cores`.
fn room_nodes_at(cores: f64, small: &Run, large: &Run) -> f64 {
    let slope = (large.local_cores - small.local_cores) / (large.room_nodes() - small.room_nodes());
    large.room_nodes() + (cores - large.local_cores) / slope
}

async fn measure(
    effort: &Effort,
    nodes: usize,
    rooms: usize,
    links: &Handle,
) -> anyhow::Result<Run> {
    let size = Size {
        data_centers: 1,
        nodes,
        is_local_relayed: false,
    };
    let names = (0..rooms).map(|room| RoomPlan::endless(&format!("room-{room}"), "leases"));
    let deployment = Deployment::start(size, &names.collect::<Vec<_>>(), links).await?;
    let rooms_of_nodes = deployment.all_rooms();
    let per_second = PER_ROOM_AND_NODE * u32::try_from(rooms_of_nodes.len())?;
    let sheet = Arc::new(Mutex::new(Sheet::default()));
    // The start costs more and is excluded here.
    let warm = Effort::plan(per_second, effort.capacity_block / 2, 1);
    send(&rooms_of_nodes, warm, &sheet).await?;
    let queued_before = sheet.lock().steady.queued;
    let (cpu, requests) = (deployment.cpu().await?, deployment.requests());
    let plan = Effort::plan(per_second, effort.capacity_block, 2);
    let began = tokio::time::Instant::now();
    send(&rooms_of_nodes, plan, &sheet).await?;
    let seconds = began.elapsed().as_secs_f64();
    let used = deployment.cpu().await?.since(cpu);
    let sent = deployment.requests().local - requests.local;
    let record_bytes = deployment.record_bytes("room-0").await;
    deployment.stop().await;
    let queued = sheet.lock().steady.queued - queued_before;
    Ok(Run {
        nodes,
        rooms,
        local_cores: used.local_s / seconds,
        world_cores: used.global_s / seconds,
        calls: sent as f64 / seconds / rooms_of_nodes.len() as f64,
        queued,
        record_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_are_extrapolated_to_half_a_core() {
        let run = |rooms, local_cores| Run {
            nodes: 2,
            rooms,
            local_cores,
            world_cores: 0.0,
            calls: 9.0,
            queued: 0,
            record_bytes: 1_000,
        };
        // 0.02 of a core for the server itself, 0.001 for each room at each node.
        let found = room_nodes_at(0.5, &run(10, 0.04), &run(40, 0.1));
        assert!((found - 480.0).abs() < 1e-6, "{found}");
        let micros = run(40, 0.1).micros_per_room_node();
        assert!((micros - 1_250.0).abs() < 1e-6, "{micros}");
    }
}
