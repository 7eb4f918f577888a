//! Latency of a deployment, and its load on the stores. Started by `cargo xtask bench cluster`.
//!
//! Nodes run in this process, on the real clock. Stores are real Redis servers behind links with
//! the latency of a data center and of a global network. Visitors take the path of a listener's
//! requests to a room; HTTP is excluded. Slow results are no failure.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

mod arrivals;
mod counted;
mod deployment;
mod latency;
mod report;
mod runs;
mod verdict;

use anteroom_bench::Machine;
use anyhow::Context as _;
use clap::Parser;
use tokio::runtime::{Builder, Handle};

use report::Report;
use runs::{Effort, capacity, cpu, newcomers, store_requests, waiting};

/// Measure nodes on real stores.
#[derive(Parser)]
#[command(name = "cargo xtask bench cluster")]
struct Options {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Measure the added latency of new visitors only: two minutes.
    #[arg(long, conflicts_with = "json")]
    latency_only: bool,
    /// Measure the cost of this many waiting visitors at one node only, as JSON.
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "latency_only"])]
    waiting: Option<u32>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    // One thread is enough: relays only wait and copy.
    let links = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("starting a runtime for relays")?;
    let nodes = Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting a runtime for nodes")?;
    if let Some(count) = options.waiting {
        let measuring = nodes.spawn(waiting::run(waiting::Plan::of(count)));
        let measured = nodes.block_on(measuring).context("the run ended early")??;
        println!("{}", serde_json::to_string_pretty(&measured)?);
        return Ok(());
    }
    if options.latency_only {
        let links = links.handle().clone();
        let measuring = nodes.spawn(async move { newcomers::run(&Effort::full(), &links).await });
        let measured = nodes.block_on(measuring).context("the run ended early")??;
        print!("{}", report::newcomers_table(&measured));
        return Ok(());
    }
    // On a worker thread: a task outside of them is woken more slowly.
    let measuring = nodes.spawn(measure(Effort::full(), links.handle().clone()));
    let report = nodes.block_on(measuring).context("the run ended early")??;
    if options.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.text());
    }
    Ok(())
}

async fn measure(effort: Effort, links: Handle) -> anyhow::Result<Report> {
    let machine = Machine::look();
    eprintln!("added latency of new visitors ...");
    let newcomers = newcomers::run(&effort, &links).await?;
    eprintln!("CPU time of the stores ...");
    let cpu = cpu::run(&effort, &links).await?;
    eprintln!("requests to the stores ...");
    let calls = store_requests::run(&effort, &links).await?;
    eprintln!("capacity of one server ...");
    let capacity = capacity::run(&effort, &links).await?;
    Ok(Report {
        machine,
        newcomers,
        cpu,
        calls,
        capacity,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_short_run_measures_everything() {
        let (effort, links) = (Effort::short(), Handle::current());
        let machine = Machine::look();
        // At once, as most of it is waiting: the results mean nothing here.
        let (newcomers, cpu, calls, capacity) = tokio::try_join!(
            newcomers::run(&effort, &links),
            cpu::run(&effort, &links),
            store_requests::run(&effort, &links),
            capacity::run(&effort, &links),
        )
        .unwrap();
        let report = Report {
            machine,
            newcomers,
            cpu,
            calls,
            capacity,
        };
        assert_eq!(report.newcomers.rows.len(), 7);
        for row in &report.newcomers.rows {
            // A short run may have no visitors by chance.
            assert_eq!(row.took.count, row.admitted + row.queued, "{row:?}");
        }
        assert!(report.newcomers.local_idle.count > 0);
        assert!(report.calls[1].answered_per_s > 0.0);
        assert_eq!(report.capacity[0].runs.len(), 2);
        let text = report.text();
        assert!(text.contains("| below the limit | leases | 50 |"), "{text}");
        report.json().unwrap();
    }
}
