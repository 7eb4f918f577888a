//! `cargo xtask bench sim`: how fast is the simulator, and does a large deployment cost more per
//! event than a small one?
//!
//! Measures by the example `speed` of `anteroom-sim`, one process for each run, and compares by CPU
//! time, which does not count what else the machine does. Nothing fails because it is slow: a
//! number from a busy machine is for a person to judge.

pub(crate) mod cluster;
pub(crate) mod gateway;
pub(crate) mod limits;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::cargo;

/// What can be measured.
#[derive(Subcommand)]
pub(crate) enum What {
    /// Events per second of the simulator, at 10 to 3 000 nodes.
    ///
    /// Each size three times, in turn, each in a process of its own; prints the middle one by CPU
    /// time per event, for the machine may have other things to do. Takes a few minutes.
    Sim(Options),
    /// What many nodes cost new visitors and stores, on real redis-servers.
    ///
    /// Added latency with counters and with leases, CPU time of redis-server, calls to the stores,
    /// and what one server carries; beside the targets. Needs redis-server. Takes about six
    /// minutes, and a machine that has nothing else to do.
    Cluster(cluster::Options),
    /// What the gateway costs per request, beside hyper alone, nginx and haproxy.
    ///
    /// The same load to each in turn, each on one processor: accepted visitors through to the
    /// origin, waiting pages, and a million who wait. Takes about six minutes, and a machine with
    /// two processors that has nothing else to do.
    Gateway(gateway::Options),
    /// What a check of a limit costs, beside governor and limitador.
    ///
    /// All in turn in one process, compared by processor time; and the bytes that each client
    /// takes. Takes about three minutes after the build, and a machine that has nothing else to do.
    Limits(limits::Options),
}

/// How to measure the simulator.
#[derive(Args)]
pub(crate) struct Options {
    /// One large run instead: 300 data centers with 10 nodes each, one hour, a spike that makes a
    /// million wait; tells what it cost and which promises held.
    #[arg(long)]
    world: bool,
    /// Visitors who come to that run.
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
/// Data centers and visitors. In the first four each node has the same work, whatever the size. The
/// last has as many visitors as the largest: what differs between those two is the number of
/// nodes alone, and not whether the crowd fits into the processor's caches.
const SIZES: [(u32, u32); 5] = [
    (1, 1_000),
    (10, 10_000),
    (100, 100_000),
    (300, 300_000),
    (1, 300_000),
];
const MINUTES: u32 = 10;
/// Every size is measured so often, all sizes in turn: a machine that slows down meanwhile slows
/// all of them. Odd, so that there is a middle one.
const ROUNDS: usize = 3;
/// Small sizes repeat until they have used this much, or chance would be all that is measured.
const CPU_SECONDS_MIN: &str = "2";

/// What was promised of the simulator, on one core.
const EVENTS_PER_CPU_SECOND_MIN: f64 = 1e6;
const LARGEST_TO_SMALLEST_MAX: f64 = 2.0;

/// What the example prints, the part that is read here.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    data_centers: u32,
    nodes_per_data_center: u32,
    /// As many as were asked for; how many come is up to the seed.
    #[serde(skip)]
    visitors: u32,
    events: u64,
    cost: Cost,
    /// Where the system says it.
    peak_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Cost {
    wall_s: f64,
    cpu_s: f64,
}

/// A line of the table: the middle one of the rounds, by cost per event.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Line {
    data_centers: u32,
    nodes: u32,
    visitors: u32,
    events: u64,
    wall_s: f64,
    cpu_s: f64,
    events_per_cpu_second: f64,
    ns_per_event: f64,
    /// Cost per event over that of the first line.
    to_the_smallest: f64,
    peak_bytes: Option<u64>,
}

/// Measures and prints.
///
/// # Errors
///
/// When the simulator cannot be built, and when a promise breaks in a run.
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
    let lines = lines(&rounds);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&lines)?);
    } else {
        println!("{}", table(&lines));
    }
    Ok(())
}

/// The example, built once: what is compared must be the same program, even if somebody edits it
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
        let program = executable(&messages).context("cargo build names no program")?;
        Ok(Self { program })
    }

    fn measure(&self, data_centers: u32, visitors: u32) -> anyhow::Result<Measured> {
        let numbers = [data_centers, NODES_PER_DATA_CENTER, visitors, MINUTES];
        let numbers = numbers.map(|number| number.to_string());
        let mut arguments: Vec<&str> = numbers.iter().map(String::as_str).collect();
        arguments.extend(["--json", "--cpu-s-min", CPU_SECONDS_MIN]);
        let printed = self.run(&arguments)?;
        let mut measured: Measured =
            serde_json::from_str(&printed).context("reading what the example `speed` printed")?;
        measured.visitors = visitors;
        ensure!(
            measured.events > 0 && measured.cost.cpu_s > 0.0,
            "nothing was measured: {printed}"
        );
        Ok(measured)
    }

    /// Runs it and returns what it prints.
    fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        eprintln!("$ speed {}", arguments.join(" "));
        let output = Command::new(&self.program)
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .context("starting the example `speed`")?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        // It ends so when a promise breaks, and has told which.
        ensure!(
            output.status.success(),
            "the example `speed` failed ({})\n{printed}",
            output.status
        );
        Ok(printed)
    }
}

/// The program among the messages of a build.
fn executable(messages: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }
    let messages = messages.lines().map(serde_json::from_str::<Message>);
    messages.flatten().find_map(|message| message.executable)
}

/// The middle of the rounds of each size, in the order in which the sizes first come.
fn lines(rounds: &[Measured]) -> Vec<Line> {
    let size_of = |measured: &Measured| (measured.data_centers, measured.visitors);
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    for measured in rounds {
        if !sizes.contains(&size_of(measured)) {
            sizes.push(size_of(measured));
        }
    }
    let mut lines: Vec<Line> = Vec::new();
    for size in sizes {
        let of_size = rounds.iter().filter(|round| size_of(round) == size);
        let mut of_size: Vec<&Measured> = of_size.collect();
        of_size.sort_by(|a, b| ns_per_event(a).total_cmp(&ns_per_event(b)));
        let middle = of_size[of_size.len() / 2];
        let ns_per_event = ns_per_event(middle);
        let smallest = lines
            .first()
            .map_or(ns_per_event, |first| first.ns_per_event);
        lines.push(Line {
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
    lines
}

fn ns_per_event(measured: &Measured) -> f64 {
    measured.cost.cpu_s * 1e9 / measured.events as f64
}

fn table(lines: &[Line]) -> String {
    let mut table = String::from(
        "| data centers | nodes | visitors | events | wall s | CPU s | events per CPU second | ns \
         per event | to the smallest | peak MiB |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for line in lines {
        let peak = line.peak_bytes.map_or_else(
            || "unknown".to_owned(),
            |bytes| format!("{:.0}", bytes as f64 / 1_048_576.0),
        );
        writeln!(
            table,
            "| {} | {} | {} | {} | {:.2} | {:.2} | {:.0} | {:.0} | {:.2} | {peak} |",
            line.data_centers,
            line.nodes,
            line.visitors,
            line.events,
            line.wall_s,
            line.cpu_s,
            line.events_per_cpu_second,
            line.ns_per_event,
            line.to_the_smallest,
        )
        .expect("a String takes all that is written to it");
    }
    table.push_str(&verdict(lines));
    table
}

fn verdict(lines: &[Line]) -> String {
    let slowest = lines.iter().map(|line| line.events_per_cpu_second);
    let slowest = slowest.fold(f64::INFINITY, f64::min);
    let (same_work, same_crowd) = ratios(lines);
    let word = |is_met: bool| if is_met { "met" } else { "MISSED" };
    format!(
        "\nat least {EVENTS_PER_CPU_SECOND_MIN:.0} events per CPU second: {} (at worst \
         {slowest:.0})\n\
         the most nodes at most {LARGEST_TO_SMALLEST_MAX:.1} times the cost per event of the \
         fewest,\n\
         \x20 with the same crowd: {} ({same_crowd:.2})\n\
         \x20 with the same work for each node: {} ({same_work:.2})",
        word(slowest >= EVENTS_PER_CPU_SECOND_MIN),
        word(same_crowd <= LARGEST_TO_SMALLEST_MAX),
        word(same_work <= LARGEST_TO_SMALLEST_MAX),
    )
}

/// The cost per event where the nodes are most, over that where they are fewest: with the least
/// work that was measured there, and with as many visitors.
fn ratios(lines: &[Line]) -> (f64, f64) {
    let Some(largest) = lines.iter().max_by_key(|line| line.nodes) else {
        return (1.0, 1.0);
    };
    let fewest = lines.iter().map(|line| line.nodes).min();
    let small = lines.iter().filter(|line| Some(line.nodes) == fewest);
    let mut same_crowd = small
        .clone()
        .filter(|line| line.visitors == largest.visitors);
    let ratio =
        |line: Option<&Line>| line.map_or(1.0, |line| largest.ns_per_event / line.ns_per_event);
    let same_work = small.min_by_key(|line| line.visitors);
    (ratio(same_work), ratio(same_crowd.next()))
}

#[cfg(test)]
mod tests;
