//! Comparison of implementations that run in turn.

use std::fmt;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tokio::time::Instant;

use crate::Options;

/// Cost of one implementation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cost {
    /// Seconds of processor time per million checks, of all threads together.
    pub(crate) cpu_s_per_million: f64,
    /// Checks per second of wall time.
    pub(crate) per_second: f64,
}

/// Result of a race.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Race {
    pub(crate) name: String,
    pub(crate) lines: Vec<Row>,
    /// Target, with the implementation to compare with.
    pub(crate) target: &'static str,
}

/// Result of one implementation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) who: &'static str,
    pub(crate) cost: Cost,
    /// Processor time relative to the first implementation.
    pub(crate) to_first: f64,
}

/// Implementation: its name, and a function that performs a number of checks.
pub(crate) type Runner<'r> = (&'static str, Box<dyn FnMut(u64) + 'r>);

/// Runs all implementations in turn in each round, and keeps the median of each.
pub(crate) fn run(
    name: &str,
    options: &Options,
    checks: u64,
    target: &'static str,
    runners: Vec<Runner<'_>>,
) -> Race {
    let checks = vec![checks; runners.len()];
    run_each(name, options, target, &checks, runners)
}

/// Runs as [`run`] does, with a number of checks for each implementation: fast ones need more.
pub(crate) fn run_each(
    name: &str,
    options: &Options,
    target: &'static str,
    checks: &[u64],
    runners: Vec<Runner<'_>>,
) -> Race {
    let mut runners: Vec<(Runner<'_>, u64)> =
        runners.into_iter().zip(checks.iter().copied()).collect();
    if let Some(wanted) = &options.who {
        runners.retain(|((who, _), _)| who.contains(&**wanted));
    }
    for ((_, runner), checks) in &mut runners {
        runner(*checks / 4);
    }
    let mut costs: Vec<Vec<Cost>> = runners.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.rounds.max(1) {
        for (((_, runner), checks), costs) in runners.iter_mut().zip(&mut costs) {
            costs.push(measure(*checks, runner));
        }
    }
    let middle: Vec<Cost> = costs.into_iter().map(middle).collect();
    let first = middle.first().map_or(1.0, |first| first.cpu_s_per_million);
    let lines = runners.iter().zip(middle);
    let lines = lines.map(|(((who, _), _), cost)| Row {
        who,
        cost,
        to_first: cost.cpu_s_per_million / first,
    });
    Race {
        name: name.to_owned(),
        lines: lines.collect(),
        target,
    }
}

fn measure(checks: u64, runner: &mut dyn FnMut(u64)) -> Cost {
    let (began, cpu) = (Instant::now(), cpu_s());
    runner(checks);
    let (wall, cpu) = (began.elapsed().as_secs_f64(), cpu_s() - cpu);
    Cost {
        cpu_s_per_million: cpu * 1e6 / checks as f64,
        per_second: checks as f64 / wall,
    }
}

pub(crate) fn middle(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by(|one, other| one.cpu_s_per_million.total_cmp(&other.cpu_s_per_million));
    costs[costs.len() / 2]
}

/// Returns the processor time that this process has used, in seconds.
pub(crate) fn cpu_s() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (target: {})", self.name, self.target)?;
        for Row {
            who,
            cost,
            to_first,
        } in &self.lines
        {
            let Cost {
                cpu_s_per_million: cpu,
                per_second,
            } = cost;
            writeln!(
                f,
                "  {who:<44} {cpu:>8.3} CPU s/million {to_first:>7.2} x {per_second:>12.0} /s"
            )?;
        }
        Ok(())
    }
}
