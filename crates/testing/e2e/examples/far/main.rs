//! Nodes far from the root, under newcomers: `cargo xtask bench far` builds and runs it.
//!
//! Two data centers have their own stores. A relay delays what they exchange with the store of the
//! root. Newcomers come to all nodes from rest, at a fixed rate, and poll when the page would. Each
//! case prints one row: who was queued although a seat was free, and what else the log of all
//! visitors shows. An exceeded limit is an error, all else is for people to assess.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

mod cases;
mod raw;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anteroom_e2e::cluster::Cluster;
use anteroom_e2e::machine::{self, CpuTimes};
use anteroom_e2e::newcomers::Findings;
use anteroom_e2e::origin::ROOM;
use anteroom_e2e::table;
use anteroom_testkit::load::{NewcomerLog, NewcomerPlan};
use clap::Parser;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use self::cases::Case;
use self::report::Row;

/// Time without visitors before newcomers come. Longer than a node keeps what it does not need.
const REST: Duration = Duration::from_secs(3);

/// Measure nodes far from the root.
#[derive(Parser)]
#[command(name = "cargo xtask bench far")]
struct Options {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure the cases with this in their name only. May be repeated.
    #[arg(long, value_name = "PART")]
    case: Vec<String>,
    /// List the cases and measure nothing.
    #[arg(long)]
    list: bool,
    /// Write all requests and their outcomes into this folder, one file for each case.
    #[arg(long, value_name = "FOLDER")]
    log: Option<PathBuf>,
    /// Seconds in which newcomers come, in each case.
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Seed of the arrivals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let cases = match table::selected(cases::all(), Case::name, &options.case, options.list) {
        Ok(cases) => cases,
        Err(code) => return code,
    };
    eprintln!("{}", machine::describe());
    if !options.json {
        print!("{}", report::header());
    }
    let mut rows = Vec::new();
    for case in cases {
        let row = measure(case, &options);
        table::print_row(&row.table_row(), options.json);
        rows.push(row);
    }
    if options.json {
        println!("{:#}", report::json(&rows));
    } else {
        print!("{}", report::legend());
    }
    table::exit_code(rows.iter().map(|row| (row.case.name(), &row.verdict)))
}

/// Measures one case, on its own deployment.
fn measure(case: Case, options: &Options) -> Row {
    // The relays and the origin have a thread of their own: visitors must not delay them.
    let servers = runtime();
    let load = runtime();
    let cluster = servers.block_on(async {
        let cluster = Cluster::start(case.setup()).await;
        cluster.lends_again().await;
        sleep(REST).await;
        cluster
    });
    let stays = Duration::from_secs(case.stays_secs);
    let plan = NewcomerPlan {
        per_second_at_node: case.per_second_at_node,
        lasts: Duration::from_secs(options.seconds),
        at_most: usize::MAX,
        goes_on: Duration::ZERO,
        stays: stays..=stays,
        think: Duration::from_secs(1),
        room: ROOM.to_owned(),
        seed: options.seed,
    };
    let (routes, nodes) = (cluster.routes(), cluster.all());
    let before = CpuTimes::now();
    let lasts = plan.lasts;
    // On a worker thread: a task outside of them is woken more slowly.
    let sending = load.spawn(async move { NewcomerLog::of(&routes, &nodes, &plan).await });
    let log = load.block_on(sending).expect("no visitor panics");
    let idle = CpuTimes::now().idle_since(before);
    if let Some(folder) = &options.log
        && let Err(error) = raw::write(folder, &case, &log)
    {
        eprintln!("error: writing into {}: {error}", folder.display());
    }
    let findings = Findings::of(&log, case.limits(), lasts);
    let verdict = servers.block_on(async { cluster.origin().verdict() });
    servers.block_on(async { drop(cluster) });
    Row {
        case,
        seconds: options.seconds,
        findings,
        verdict,
        idle,
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("this machine starts a thread")
}
