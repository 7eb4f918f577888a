//! What does one Redis carry? Rooms under load, times nodes, at which the redis-server of a data
//! center uses half a core.
//!
//! Measured with nodes at two sizes, and drawn out in a straight line. Nodes take many times the
//! CPU time of the server, so one machine has no room for both at that size; it is tried with calls
//! alone: as many, for records as long, with nobody who decides. The ledger of a room has a line
//! for each node, so what a call costs depends on how many nodes there are.

mod echo;

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;

use super::Effort;
use crate::crowd::{Sheet, send};
use crate::deployment::{Deployment, RoomPlan, Size};

/// New visitors a second and room and node: enough that the room is never at rest.
const PER_ROOM_AND_NODE: u32 = 8;
/// Of a core, what a server is meant to use at most.
const HALF_A_CORE: f64 = 0.5;
/// Calls with many rooms over calls with few: below it the machine did not keep up.
const KEPT_UP_MIN: f64 = 0.9;
/// More than any machine here would bear, if two runs point nowhere.
const ROOMS_MAX: f64 = 2_000.0;

/// What was measured with so many nodes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Capacity {
    pub(crate) nodes: usize,
    /// Two sizes.
    pub(crate) runs: [Run; 2],
    /// `None` if this machine could not keep up with the larger size: its figures point nowhere.
    pub(crate) beyond: Option<Beyond>,
}

/// What two runs point to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Beyond {
    /// Rooms times nodes at half a core, by a straight line.
    pub(crate) room_nodes: f64,
    /// Calls alone, at the larger of the two sizes: how like they are.
    pub(crate) echo_of_large: Run,
    /// Calls alone, at the size to which the runs point.
    pub(crate) echo: Run,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) nodes: usize,
    pub(crate) rooms: usize,
    /// CPU seconds a second of the data center's server.
    pub(crate) local_cores: f64,
    /// CPU seconds a second of the world's server, for this one data center.
    pub(crate) world_cores: f64,
    /// Calls to the data center's store a second and room and node: less than with few rooms means
    /// that this machine could not keep up.
    pub(crate) calls: f64,
    pub(crate) queued: u64,
    /// Of the first room's record, at the end.
    pub(crate) record_bytes: usize,
}

impl Run {
    pub(crate) fn room_nodes(&self) -> f64 {
        (self.rooms * self.nodes) as f64
    }

    /// CPU time of the data center's server in a second for one room at one node, in microseconds.
    pub(crate) fn micros_per_room_node(&self) -> f64 {
        self.local_cores * 1e6 / self.room_nodes()
    }
}

/// Measures.
pub(crate) async fn run(effort: &Effort, links: &Handle) -> anyhow::Result<Vec<Capacity>> {
    let mut found = Vec::new();
    for &(nodes, [small, large]) in &effort.capacity {
        let runs = [
            measure(effort, nodes, small, links).await?,
            measure(effort, nodes, large, links).await?,
        ];
        let has_kept_up = runs[1].calls >= KEPT_UP_MIN * runs[0].calls;
        let beyond = if has_kept_up {
            Some(look_beyond(effort, &runs).await?)
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

async fn look_beyond(effort: &Effort, [small, large]: &[Run; 2]) -> anyhow::Result<Beyond> {
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

/// Where the line through two runs reaches `cores`.
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
    let doors = deployment.all_rooms();
    let per_second = PER_ROOM_AND_NODE * u32::try_from(doors.len())?;
    let sheet = Arc::new(Mutex::new(Sheet::default()));
    // What begins costs more; it is not asked for here.
    let warm = Effort::plan(per_second, effort.capacity_block / 2, 1);
    send(&doors, warm, &sheet).await?;
    let queued_before = sheet.lock().steady.queued;
    let (cpu, calls) = (deployment.cpu().await?, deployment.calls());
    let plan = Effort::plan(per_second, effort.capacity_block, 2);
    let began = tokio::time::Instant::now();
    send(&doors, plan, &sheet).await?;
    let seconds = began.elapsed().as_secs_f64();
    let used = deployment.cpu().await?.since(cpu);
    let called = deployment.calls().local - calls.local;
    let record_bytes = deployment.record_bytes("room-0").await;
    deployment.stop().await;
    let queued = sheet.lock().steady.queued - queued_before;
    Ok(Run {
        nodes,
        rooms,
        local_cores: used.local_s / seconds,
        world_cores: used.world_s / seconds,
        calls: called as f64 / seconds / doors.len() as f64,
        queued,
        record_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_point_to_where_half_a_core_is_used() {
        let run = |rooms, local_cores| Run {
            nodes: 2,
            rooms,
            local_cores,
            world_cores: 0.0,
            calls: 9.0,
            queued: 0,
            record_bytes: 1_000,
        };
        // 0.02 of a core for itself, 0.001 for each room at each node.
        let found = room_nodes_at(0.5, &run(10, 0.04), &run(40, 0.1));
        assert!((found - 480.0).abs() < 1e-6, "{found}");
        let micros = run(40, 0.1).micros_per_room_node();
        assert!((micros - 1_250.0).abs() < 1e-6, "{micros}");
    }
}
