//! Measurements as text and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use anteroom_room::rules::Limits;
use anteroom_sim::outcome::{Invariant, Outcome, RunStatistics, Violation};
use serde::Serialize;

use crate::meter::Cost;
use crate::plans::Size;

/// Measurement of one or several runs of one size.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    data_centers: u32,
    nodes_per_data_center: u32,
    minutes: u32,
    total_active_users: u32,
    new_users_per_minute: u32,
    /// Number of runs; the events and the cost are sums over them.
    runs: u32,
    events: u64,
    pub(crate) cost: Cost,
    pub(crate) peak_bytes: Option<u64>,
    /// Most waiting visitors at the end of a sample.
    waiting_max: u32,
    /// Statistics of the last run.
    stats: RunStatistics,
    /// Violations of all runs, at most a hundred of each.
    pub(crate) broken: Vec<Violation>,
}

impl Measured {
    pub(crate) fn new(size: Size, limits: Limits) -> Self {
        Self {
            data_centers: size.data_centers,
            nodes_per_data_center: size.nodes,
            minutes: size.minutes,
            total_active_users: limits.total_active_users,
            new_users_per_minute: limits.new_users_per_minute,
            runs: 0,
            events: 0,
            cost: Cost {
                wall_s: 0.0,
                cpu_s: 0.0,
            },
            peak_bytes: None,
            waiting_max: 0,
            stats: RunStatistics::default(),
            broken: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.runs += 1;
        self.events += outcome.stats.events;
        let waiting = outcome.samples.iter().map(|sample| sample.waiting).max();
        self.waiting_max = self.waiting_max.max(waiting.unwrap_or(0));
        self.stats = outcome.stats;
        self.broken.extend(outcome.violations);
    }

    /// Returns the measurement as one line of JSON.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("plain numbers and names can be written as JSON")
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = &self.stats;
        let nodes = u64::from(self.data_centers) * u64::from(self.nodes_per_data_center);
        writeln!(
            f,
            "{} data centers, {nodes} nodes, {} visitors in {} minutes, {} run(s)",
            self.data_centers, stats.visitors, self.minutes, self.runs
        )?;
        writeln!(
            f,
            "active at most {} of {} seats; above the limit by {}",
            stats.inside_max, self.total_active_users, stats.above_seats
        )?;
        writeln!(
            f,
            "admitted in a minute at most {} of {}; above the limit by {}",
            stats.admitted_in_a_minute_max, self.new_users_per_minute, stats.above_rate
        )?;
        self.fmt_broken(f)?;
        writeln!(
            f,
            "waiting at most {}; {} admitted, {} left while waiting, {} queued with a valid ticket",
            self.waiting_max, stats.admitted, stats.abandoned, stats.queued_with_ticket
        )?;
        writeln!(
            f,
            "fill while overloaded {}; utilization at the first queue {}; queued although free {}",
            share(stats.fill_while_overloaded),
            share(stats.utilization_at_first_queue),
            share(Some(stats.queued_although_free)),
        )?;
        writeln!(
            f,
            "wait p50 {}, p90 {}, p99 {}, max {}; order inversion p99 {}",
            secs(stats.wait_ms_p50),
            secs(stats.wait_ms_p90),
            secs(stats.wait_ms_p99),
            secs(stats.wait_ms_max),
            secs(stats.order_inversion_ms_p99),
        )?;
        writeln!(
            f,
            "store requests: {:.2} per node and second, global ones {:.2} per data center and \
             second",
            stats.local_requests_per_node_and_second,
            stats.global_requests_per_data_center_and_second
        )?;
        let cost = self.cost;
        writeln!(
            f,
            "{} events in {:.1} s, {:.1} s of CPU time: {:.0} events per CPU second, {:.0} ns each",
            self.events,
            cost.wall_s,
            cost.cpu_s,
            self.events as f64 / cost.cpu_s,
            cost.cpu_s * 1e9 / self.events as f64
        )?;
        match self.peak_bytes {
            Some(bytes) => write!(f, "peak memory {:.0} MiB", bytes as f64 / 1_048_576.0),
            None => write!(f, "peak memory unknown on this system"),
        }
    }
}

impl Measured {
    fn fmt_broken(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.broken.is_empty() {
            return writeln!(f, "violated invariants: none");
        }
        let mut counts: BTreeMap<Invariant, u32> = BTreeMap::new();
        for violation in &self.broken {
            *counts.entry(violation.promise).or_default() += 1;
        }
        writeln!(f, "VIOLATED INVARIANTS: {counts:?}")?;
        for violation in self.broken.iter().take(5) {
            let at = violation.at_ms as f64 / 1e3;
            writeln!(
                f,
                "  at {at:.3} s {:?}: {}",
                violation.promise, violation.seen
            )?;
        }
        Ok(())
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(
        || "unknown".to_owned(),
        |share| format!("{:.2} %", share * 100.0),
    )
}

fn secs(ms: Option<u64>) -> String {
    ms.map_or_else(
        || "none".to_owned(),
        |ms| format!("{:.1} s", ms as f64 / 1e3),
    )
}
