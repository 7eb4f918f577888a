//! CPU time of the stores for new visitors.
//!
//! Each allocation has its own servers, so that the idle cost of one is not counted for the other;
//! they take turns.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;

use super::Effort;
use crate::arrivals::{Sheet, send};
use crate::deployment::{Deployment, RoomPlan, ServersCpu, Size};

/// Turns of each allocation.
const ROUNDS: u32 = 2;

/// Results of the measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cpu {
    pub(crate) nodes: usize,
    pub(crate) per_node: u32,
    pub(crate) counters: Cost,
    pub(crate) leases: Cost,
    /// CPU seconds of all three servers per idle second.
    pub(crate) idle_s_per_s: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Cost {
    pub(crate) visitors: u64,
    pub(crate) queued: u64,
    pub(crate) seconds: f64,
    /// CPU seconds of both local stores.
    pub(crate) local_s: f64,
    /// CPU seconds of the global store.
    pub(crate) world_s: f64,
}

impl Cost {
    /// Returns the CPU seconds of all servers per million new visitors.
    pub(crate) fn per_million(&self) -> f64 {
        (self.local_s + self.world_s) * 1e6 / self.visitors.max(1) as f64
    }
}

impl Cpu {
    /// Returns the ratio of leases to counters, including idle cost.
    pub(crate) fn ratio(&self) -> f64 {
        self.leases.per_million() / self.counters.per_million()
    }

    /// Returns the ratio of leases to counters, without idle cost.
    pub(crate) fn ratio_without_idle(&self) -> f64 {
        let net = |cost: &Cost| {
            let all = cost.local_s + cost.world_s - self.idle_s_per_s * cost.seconds;
            all / cost.visitors.max(1) as f64
        };
        net(&self.leases) / net(&self.counters)
    }
}

/// Measures the CPU time.
pub(crate) async fn run(effort: &Effort, links: &Handle) -> anyhow::Result<Cpu> {
    let size = Size {
        data_centers: 2,
        nodes: effort.nodes,
        is_local_relayed: true,
    };
    let mut deployments = Vec::new();
    for name in ["counters", "leases"] {
        let rooms = [RoomPlan::endless(name, name)];
        deployments.push((name, Deployment::start(size, &rooms, links).await?));
    }
    tokio::time::sleep(effort.lead_in).await;
    let before = deployments[1].1.cpu().await?;
    tokio::time::sleep(effort.idle).await;
    let idle = deployments[1].1.cpu().await?.since(before);
    let nodes = 2 * effort.nodes;
    let per_second = effort.cpu_per_node * u32::try_from(nodes)?;
    let blocks = u32::try_from(effort.cpu_block.as_secs() + 1)? * ROUNDS;
    let counters = &deployments[0].1;
    if let Some(history) = effort.make_history(counters, per_second * blocks).await? {
        history.wait_until_known().await;
    }
    let mut costs = [Cost::default(), Cost::default()];
    for round in 0..ROUNDS {
        for ((name, deployment), cost) in deployments.iter().zip(&mut costs) {
            let plan = Effort::plan(per_second, effort.cpu_block, u64::from(round) + 1);
            let sheet = Arc::new(Mutex::new(Sheet::default()));
            let before = deployment.cpu().await?;
            send(&deployment.rooms(name), plan, &sheet).await?;
            let used = deployment.cpu().await?.since(before);
            cost.add(&sheet.lock(), used, effort.cpu_block.as_secs_f64());
        }
    }
    for (_, deployment) in deployments {
        deployment.stop().await;
    }
    let [counters, leases] = costs;
    Ok(Cpu {
        nodes,
        per_node: effort.cpu_per_node,
        counters,
        leases,
        idle_s_per_s: idle.total_s() / effort.idle.as_secs_f64(),
    })
}

impl Cost {
    fn add(&mut self, sheet: &Sheet, used: ServersCpu, seconds: f64) {
        self.visitors += sheet.total();
        self.queued += sheet.steady.queued;
        self.seconds += seconds;
        self.local_s += used.local_s;
        self.world_s += used.global_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_per_million_visitors_is_reported_with_and_without_idle_use() {
        let cost = |visitors, local_s| Cost {
            visitors,
            seconds: 10.0,
            local_s,
            ..Cost::default()
        };
        let cpu = Cpu {
            nodes: 4,
            per_node: 1_000,
            counters: cost(40_000, 1.1),
            leases: cost(40_000, 0.15),
            idle_s_per_s: 0.01,
        };
        let check = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        };
        check(cpu.counters.per_million(), 27.5);
        check(cpu.ratio(), 0.15 / 1.1);
        check(cpu.ratio_without_idle(), 0.05);
    }
}
