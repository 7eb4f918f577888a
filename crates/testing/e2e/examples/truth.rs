//! Truth of announced waits on real nodes: `cargo xtask bench truth` builds and runs it.
//!
//! Each run starts its own deployment and sends visitors who note what responses announce and when
//! they go in. It prints one row. An exceeded limit is an error, all else is for people to assess.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

use std::path::PathBuf;
use std::process::ExitCode;

use anteroom_e2e::truth::cases::{self, TruthCase};
use anteroom_e2e::truth::run::{Outcome, run};
use anteroom_e2e::truth::{raw, report};
use anteroom_e2e::{machine, table};
use clap::Parser;

/// Measure whether announced waits come true.
#[derive(Parser)]
#[command(name = "cargo xtask bench truth")]
struct Options {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Run the cases with this in their name only. May be repeated.
    #[arg(long, value_name = "PART")]
    case: Vec<String>,
    /// List the cases and run nothing.
    #[arg(long)]
    list: bool,
    /// Write all responses to waiting visitors into this folder, one file for each case.
    #[arg(long, value_name = "FOLDER")]
    log: Option<PathBuf>,
    /// Seed of the arrivals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let cases = match table::selected(cases::all(), TruthCase::name, &options.case, options.list) {
        Ok(cases) => cases,
        Err(code) => return code,
    };
    eprintln!("{}", machine::describe());
    if !options.json {
        print!("{}", report::header());
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    for case in cases {
        let outcome = run(case, options.seed).await;
        table::print_row(&outcome.table_row(), options.json);
        if let Some(folder) = &options.log
            && let Err(error) = raw::write(folder, &outcome)
        {
            eprintln!("error: writing into {}: {error}", folder.display());
        }
        outcomes.push(outcome);
    }
    if options.json {
        println!("{:#}", report::json(&outcomes));
    } else {
        print!("{}", report::legend());
    }
    table::exit_code(
        outcomes
            .iter()
            .map(|outcome| (outcome.case.name(), &outcome.verdict)),
    )
}
