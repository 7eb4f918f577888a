//! Benchmark of the simulator, `cargo xtask bench sim`: its speed, and whether a large deployment
//! costs more per event than a small one.
//!
//! It runs the example `speed` of `anteroom-sim`, in one process per run. Runs are compared by CPU
//! time, which excludes other work of the machine. A slow result is no failure: a person assesses
//! it.

pub(crate) mod cluster;
pub(crate) mod counts;
pub(crate) mod example;
pub(crate) mod gateway;
pub(crate) mod limits;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::cargo;

/// Benchmark to run.
#[derive(Subcommand)]
pub(crate) enum Benchmark {
    /// Events per second of the simulator, at 10 to 3 000 nodes.
    ///
    /// Each size is measured three times, in turn, each in its own process. The median by CPU time
    /// per event is printed, as the machine may have other work. Takes a few minutes.
    Sim(Options),
    /// Latency of new visitors and load on stores with many nodes, on real redis-servers.
    ///
    /// Measures added latency with counters and with leases, CPU time of redis-server, requests to
    /// the stores and the capacity of one server, and compares them with the targets. Needs
    /// redis-server. Takes about six minutes on an otherwise idle machine.
    Cluster(cluster::Options),
    /// Visitors who are queued although a seat is free, at real nodes far from the root.
    ///
    /// Two data centers are 200 or 400 ms there and back from the store of the root. Newcomers come
    /// to all nodes at a fixed rate, from rest. Prints a row for each case. An exceeded limit is a
    /// failure. Needs redis-server. Takes about five minutes after the build, on an otherwise idle
    /// machine.
    #[command(after_help = example::FAR)]
    Far(example::Options),
    /// Truth of the waits that are announced to waiting visitors, at real nodes.
    ///
    /// One node with its own store gets 200 and 2,000 visitors at once, and 200 who come before an
    /// opening. So do three nodes on one redis-server. Visitors note what responses announce, and
    /// when they go in. Prints a row for each run. An exceeded limit is a failure. Needs
    /// redis-server. Takes about twenty minutes after the build, on an otherwise idle machine.
    #[command(after_help = example::TRUTH)]
    Truth(example::Options),
    /// Cost of the gateway per request, compared with hyper alone, nginx and haproxy.
    ///
    /// Each gets the same load in turn, on one processor, at a fixed rate: requests of active
    /// visitors and waiting pages. Then come idle connections and a million waiting visitors. Takes
    /// about fifteen minutes on an otherwise idle machine with two processors.
    Gateway(gateway::Options),
    /// Instructions, allocations and system calls of the gateway per request.
    ///
    /// Other work of the machine does not change them. Needs nginx, valgrind and strace. Takes
    /// about five minutes after the build. `--check` compares them with the committed figures.
    Counts(counts::Options),
    /// Cost of checking a limit, compared with governor and limitador.
    ///
    /// All run in turn in one process and are compared by processor time; the bytes per client are
    /// measured, too. Takes about three minutes after the build, on an otherwise idle machine.
    Limits(limits::Options),
}

/// Options of the benchmark of the simulator.
#[derive(Args)]
pub(crate) struct Options {
    /// Measure one large run instead, and print its cost and which invariants held: 300 data
    /// centers with 10 nodes each, for one hour, with a spike that makes a million visitors wait.
    #[arg(long)]
    world: bool,
    /// Number of visitors of that run.
    #[arg(
        long,
        value_name = "N",
        requires = "world",
        default_value_t = 20_000_000
    )]
    visitors: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

const NODES_PER_DATA_CENTER: u32 = 10;
/// Data centers and visitors. In the first four sizes each node has the same work. The last has as
/// many visitors as the largest. Those two differ only in the number of nodes, and not in whether
/// the visitors fit into the processor's caches.
const SIZES: [(u32, u32); 5] = [
    (1, 1_000),
    (10, 10_000),
    (100, 100_000),
    (300, 300_000),
    (1, 300_000),
];
const MINUTES: u32 = 10;
/// Measurements of each size, all sizes in turn: a machine that slows down affects all of them.
/// Odd, so that there is a median.
const ROUNDS: usize = 3;
/// CPU seconds that a size must use at least: small sizes repeat, as chance would decide otherwise.
const CPU_SECONDS_MIN: &str = "2";

/// Targets of the simulator, on one core.
const EVENTS_PER_CPU_SECOND_MIN: f64 = 1e6;
const LARGEST_TO_SMALLEST_MAX: f64 = 2.0;

/// Output of the example, as far as it is used here.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    data_centers: u32,
    nodes_per_data_center: u32,
    /// Requested number; the number that arrives depends on the seed.
    #[serde(skip)]
    visitors: u32,
    events: u64,
    cost: Cost,
    /// Peak memory; `None` if the system does not report it.
    peak_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Cost {
    wall_s: f64,
    cpu_s: f64,
}

/// Row of the table: the median of the rounds, by cost per event.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    data_centers: u32,
    nodes: u32,
    visitors: u32,
    events: u64,
    wall_s: f64,
    cpu_s: f64,
    events_per_cpu_second: f64,
    ns_per_event: f64,
    /// Cost per event relative to the first row.
    to_the_smallest: f64,
    peak_bytes: Option<u64>,
}

/// Measures the simulator and prints the results.
///
/// # Errors
///
/// If the simulator cannot be built, or an invariant breaks in a run.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let speed = Speed::build()?;
    if options.world {
        let visitors = options.visitors.to_string();
        let mut arguments = vec!["--world", "300", "10", &visitors, "60"];
        arguments.extend(options.json.then_some("--json"));
        print!("{}", speed.run(&arguments)?);
        return Ok(());
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        for (data_centers, visitors) in SIZES {
            rounds.push(speed.measure(data_centers, visitors)?);
        }
    }
    let rows = rows(&rounds);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        println!("{}", table(&rows));
    }
    Ok(())
}

/// Example `speed`, built once: all runs use the same program, even if its source changes
/// meanwhile.
struct Speed {
    program: PathBuf,
}

impl Speed {
    fn build() -> anyhow::Result<Self> {
        let messages = cargo::read(&[
            "build",
            "--release",
            "-p",
            "anteroom-sim",
            "--example",
            "speed",
            "--message-format=json-render-diagnostics",
        ])?;
        let program = executable(&messages, "speed").context("cargo build reported no program")?;
        Ok(Self { program })
    }

    fn measure(&self, data_centers: u32, visitors: u32) -> anyhow::Result<Measured> {
        let numbers = [data_centers, NODES_PER_DATA_CENTER, visitors, MINUTES];
        let numbers = numbers.map(|number| number.to_string());
        let mut arguments: Vec<&str> = numbers.iter().map(String::as_str).collect();
        arguments.extend(["--json", "--cpu-s-min", CPU_SECONDS_MIN]);
        let output_text = self.run(&arguments)?;
        let mut measured: Measured = serde_json::from_str(&output_text)
            .context("reading the output of the example `speed`")?;
        measured.visitors = visitors;
        ensure!(
            measured.events > 0 && measured.cost.cpu_s > 0.0,
            "nothing was measured: {output_text}"
        );
        Ok(measured)
    }

    /// Runs the example and returns its output.
    fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        eprintln!("$ speed {}", arguments.join(" "));
        let output = Command::new(&self.program)
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .context("starting the example `speed`")?;
        let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
        // It fails if an invariant breaks, and has printed which.
        ensure!(
            output.status.success(),
            "the example `speed` failed ({})\n{output_text}",
            output.status
        );
        Ok(output_text)
    }
}

/// Program of the workspace, and its package. Both must be named: Cargo builds the gateway only by
/// default.
#[derive(Debug)]
struct Program {
    package: &'static str,
    name: &'static str,
}

const GATEWAY: Program = Program {
    package: "anteroom",
    name: "anteroom",
};
const CLUSTER: Program = Program {
    package: "anteroom-bench",
    name: "anteroom-bench-cluster",
};
const RACE: Program = Program {
    package: "anteroom-bench",
    name: "anteroom-bench-gateway",
};

/// Builds a program and returns its path.
fn build(profile: &str, program: &Program) -> anyhow::Result<PathBuf> {
    build_all(profile, [program]).map(|[path]| path)
}

/// Builds programs in one go and returns their paths. One by one, each would have dependencies with
/// its own set of features.
fn build_all<const N: usize>(
    profile: &str,
    programs: [&Program; N],
) -> anyhow::Result<[PathBuf; N]> {
    let mut arguments = build_arguments(profile, &programs);
    arguments.push("--message-format=json-render-diagnostics");
    let messages = cargo::read(&arguments)?;
    let paths = programs.map(|program| executable(&messages, program.name));
    ensure!(
        paths.iter().all(Option::is_some),
        "cargo build reported no program"
    );
    Ok(paths.map(Option::unwrap_or_default))
}

/// Returns the arguments of Cargo that build programs in one go.
fn build_arguments<'a>(profile: &'a str, programs: &[&'a Program]) -> Vec<&'a str> {
    let mut arguments = vec!["build", "--profile", profile];
    for program in programs {
        arguments.extend(["--package", program.package, "--bin", program.name]);
    }
    arguments
}

/// Returns the path of a program in the messages of a build.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }
    let messages = messages.lines().map(serde_json::from_str::<Message>);
    let mut paths = messages.flatten().filter_map(|message| message.executable);
    paths.find(|path| path.file_stem().is_some_and(|stem| stem == name))
}

/// Returns the median of each size's rounds, in the order of the sizes.
fn rows(rounds: &[Measured]) -> Vec<Row> {
    let size_of = |measured: &Measured| (measured.data_centers, measured.visitors);
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    for measured in rounds {
        if !sizes.contains(&size_of(measured)) {
            sizes.push(size_of(measured));
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    for size in sizes {
        let of_size = rounds.iter().filter(|round| size_of(round) == size);
        let mut of_size: Vec<&Measured> = of_size.collect();
        of_size.sort_by(|a, b| ns_per_event(a).total_cmp(&ns_per_event(b)));
        let middle = of_size[of_size.len() / 2];
        let ns_per_event = ns_per_event(middle);
        let smallest = rows
            .first()
            .map_or(ns_per_event, |first| first.ns_per_event);
        rows.push(Row {
            data_centers: middle.data_centers,
            nodes: middle.data_centers * middle.nodes_per_data_center,
            visitors: middle.visitors,
            events: middle.events,
            wall_s: middle.cost.wall_s,
            cpu_s: middle.cost.cpu_s,
            events_per_cpu_second: 1e9 / ns_per_event,
            ns_per_event,
            to_the_smallest: ns_per_event / smallest,
            peak_bytes: middle.peak_bytes,
        });
    }
    rows
}

fn ns_per_event(measured: &Measured) -> f64 {
    measured.cost.cpu_s * 1e9 / measured.events as f64
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| data centers | nodes | visitors | events | wall s | CPU s | events per CPU second | ns \
         per event | to the smallest | peak MiB |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for row in rows {
        let peak = row.peak_bytes.map_or_else(
            || "unknown".to_owned(),
            |bytes| format!("{:.0}", bytes as f64 / 1_048_576.0),
        );
        writeln!(
            table,
            "| {} | {} | {} | {} | {:.2} | {:.2} | {:.0} | {:.0} | {:.2} | {peak} |",
            row.data_centers,
            row.nodes,
            row.visitors,
            row.events,
            row.wall_s,
            row.cpu_s,
            row.events_per_cpu_second,
            row.ns_per_event,
            row.to_the_smallest,
        )
        .expect("writing to a String does not fail");
    }
    table.push_str(&verdict(rows));
    table
}

fn verdict(rows: &[Row]) -> String {
    let slowest = rows.iter().map(|row| row.events_per_cpu_second);
    let slowest = slowest.fold(f64::INFINITY, f64::min);
    let (same_work, same_visitors) = ratios(rows);
    let verdict = |is_met: bool| if is_met { "met" } else { "MISSED" };
    format!(
        "\nat least {EVENTS_PER_CPU_SECOND_MIN:.0} events per CPU second: {} (at worst \
         {slowest:.0})\n\
         the most nodes at most {LARGEST_TO_SMALLEST_MAX:.1} times the cost per event of the \
         fewest,\n\
         \x20 with the same visitors: {} ({same_visitors:.2})\n\
         \x20 with the same work for each node: {} ({same_work:.2})",
        verdict(slowest >= EVENTS_PER_CPU_SECOND_MIN),
        verdict(same_visitors <= LARGEST_TO_SMALLEST_MAX),
        verdict(same_work <= LARGEST_TO_SMALLEST_MAX),
    )
}

/// Returns the cost per event with the most nodes, relative to that with the fewest nodes: with the
/// least work measured there, and with as many visitors.
fn ratios(rows: &[Row]) -> (f64, f64) {
    let Some(largest) = rows.iter().max_by_key(|row| row.nodes) else {
        return (1.0, 1.0);
    };
    let fewest = rows.iter().map(|row| row.nodes).min();
    let small = rows.iter().filter(|row| Some(row.nodes) == fewest);
    let mut same_visitors = small.clone().filter(|row| row.visitors == largest.visitors);
    let ratio = |row: Option<&Row>| row.map_or(1.0, |row| largest.ns_per_event / row.ns_per_event);
    let same_work = small.min_by_key(|row| row.visitors);
    (ratio(same_work), ratio(same_visitors.next()))
}

#[cfg(test)]
mod tests;
