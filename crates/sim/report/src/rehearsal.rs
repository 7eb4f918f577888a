//! `anteroom simulate`: the gateway's own code under simulated visitors.
//!
//! Chooses the scenario, applies settings to it, and shows the outcome; `anteroom-sim` runs it. The
//! command opens no socket and needs no runtime.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::lab::command::LimitsOptions;
use crate::lab::printing::{check_folder, write_story};
use crate::story;
use anteroom_config::time_text::rfc3339_millis;
use anteroom_config::words;
use anteroom_room::rules::AllocationKind;
use anteroom_sim::outcome::Outcome;
use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

mod runs;
mod source;

/// Result of a simulation.
#[derive(Debug)]
pub enum SimulateResult {
    /// The runs are over, with this exit code: 1 if `leases` violated an invariant.
    Done(ExitCode),
    /// The scenario has these mistakes; nothing was run.
    Mistaken(Vec<String>),
}

/// Flags of `anteroom simulate`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct SimulateOptions {
    #[command(subcommand)]
    other: Option<Other>,
    /// Scenario file, or the name of a ready-made scenario
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "story"])]
    scenario: Option<String>,
    /// List the ready-made scenarios
    #[arg(long, conflicts_with_all = ["scenario", "print"])]
    list: bool,
    /// Print the scenario's file, as a start for your own, and run nothing
    #[arg(long)]
    print: bool,
    /// Change a value of the scenario; several values, or the same key again, are compared
    #[arg(long, value_name = "KEY=VALUE[,VALUE]")]
    set: Vec<String>,
    /// Compare only this allocation of slots among nodes; may be repeated
    #[arg(long, value_name = "ALLOCATION", value_parser = PossibleValuesParser::new(ALLOCATIONS))]
    allocation: Vec<String>,
    /// Seed of the random numbers; the same seed gives the same run
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// Simulate only this long, such as 10m
    #[arg(long, value_name = "DURATION")]
    length: Option<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Also write a page with charts into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print an article on why there are four allocations, with results of this program's own code,
    /// and write it and its charts into this folder; run nothing else
    #[arg(long, value_name = "DIR", exclusive = true)]
    story: Option<PathBuf>,
}

/// Further simulations.
#[derive(Clone, Debug, Subcommand)]
enum Other {
    /// Compare how well rate limit algorithms count: on the same traffic, next to the exact count
    Limits(LimitsOptions),
}

const ALLOCATIONS: [&str; 4] = ["even", "curve", "counters", "leases"];

const EXAMPLES: &str = "\
Look at the scenarios, and run one:
  anteroom simulate --list
  anteroom simulate flash-sale
What if the limit were different, or twice as many visitors came?
  anteroom simulate flash-sale --set room.sale.new_users_per_minute=900
  anteroom simulate flash-sale --allocation leases \\
      --set room.sale.new_users_per_minute=600,900,1200
  anteroom simulate flash-sale --set 'room.sale.arrivals[2].times=2'
Your own: start with a similar scenario, put your numbers in, and share the report
  anteroom simulate flash-sale --print > friday.toml
  anteroom simulate friday.toml --out friday && open friday/index.html
Rate limits:
  anteroom simulate limits --help
A setting is a path of keys as in the file; elements of lists are counted from 1. Everything about
visitors is an assumption, and the origin is not simulated.
Exit code: 0, or 1 if leases violated an invariant, or 2 if the scenario cannot be read or has
mistakes.";

/// Simulates a scenario and prints the results.
///
/// # Errors
///
/// Returns an error if the report cannot be written.
pub fn run(
    options: &SimulateOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<SimulateResult> {
    if let Some(Other::Limits(options)) = &options.other {
        crate::lab::command::run(options, out, err)?;
        return Ok(SimulateResult::Done(ExitCode::SUCCESS));
    }
    if let Some(folder) = &options.story {
        write_story(folder, story::tell, out, err)?;
        return Ok(SimulateResult::Done(ExitCode::SUCCESS));
    }
    let Some(wanted) = options.scenario.as_deref() else {
        out.write_all(source::list().as_bytes())?;
        return Ok(SimulateResult::Done(ExitCode::SUCCESS));
    };
    let source = match source::Source::open(wanted) {
        Ok(source) => source,
        Err(error) => return Ok(SimulateResult::Mistaken(vec![format!("{error:#}")])),
    };
    if options.print {
        out.write_all(source.text().as_bytes())?;
        return Ok(SimulateResult::Done(ExitCode::SUCCESS));
    }
    let variants = match source.variants(options) {
        Ok(variants) => variants,
        Err(mistakes) => return Ok(SimulateResult::Mistaken(mistakes)),
    };
    if let Some(folder) = &options.out {
        check_folder("--out", folder)?;
    }
    let jobs = runs::jobs(&variants)?;
    let outcomes = runs::run(&variants, &jobs);
    let scenario = &variants[0].scenario;
    if options.json {
        out.write_all(format!("{}\n", crate::json(scenario, &outcomes)).as_bytes())?;
    } else {
        out.write_all(crate::table(&outcomes).as_bytes())?;
    }
    if let Some(folder) = &options.out {
        let page =
            crate::write_html(folder, scenario, &outcomes).context("cannot write the report")?;
        writeln!(err, "\nThe report is in {}", page.display())?;
    }
    Ok(SimulateResult::Done(report_violations(&outcomes, err)?))
}

/// Reports the invariants that `leases` violated; the other allocations have none.
fn report_violations(outcomes: &[Outcome], err: &mut impl Write) -> io::Result<ExitCode> {
    let mut has_none = true;
    for outcome in outcomes {
        if outcome.allocation != AllocationKind::Leases {
            continue;
        }
        if let Some(first) = outcome.violations.first() {
            has_none = false;
            writeln!(
                err,
                "error: room \"{}\": {} violated an invariant {} times, first at {}: {:?}: {}",
                outcome.room,
                words::allocation(outcome.allocation),
                outcome.violations.len(),
                rfc3339_millis(outcome.starts_at + anteroom_room::time::DurationMs(first.at_ms)),
                first.promise,
                first.seen
            )?;
        }
    }
    if has_none {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        err,
        "this is a bug in Anteroom; report it with the scenario and its seed"
    )?;
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use anteroom_room::rules::Limits;
    use anteroom_room::time::{DurationMs, Timestamp};
    use anteroom_sim::outcome::{Invariant, RunStatistics, Violation};

    use super::*;

    fn outcome(allocation: AllocationKind, violations: usize) -> Outcome {
        let violation = Violation {
            promise: Invariant::Seats,
            at_ms: 1_500,
            seen: "201 active visitors, 200 allowed".to_owned(),
        };
        Outcome {
            room: "shop".to_owned(),
            allocation,
            settings: Vec::new(),
            limits: Limits {
                total_active_users: 200,
                new_users_per_minute: 200,
            },
            starts_at: Timestamp::ZERO,
            length: DurationMs::from_secs(60),
            stats: RunStatistics::default(),
            samples: Vec::new(),
            data_centers: Vec::new(),
            events: vec![],
            violations: vec![violation; violations],
        }
    }

    #[test]
    fn only_a_violation_with_leases_fails_the_command() {
        let check = |outcomes: &[Outcome], expected: ExitCode| {
            // An exit code can be shown, not compared.
            let code = report_violations(outcomes, &mut Vec::new()).unwrap();
            assert_eq!(format!("{code:?}"), format!("{expected:?}"));
        };
        let even = outcome(AllocationKind::Even, 3);
        let leases = outcome(AllocationKind::Leases, 0);
        check(&[even.clone(), leases], ExitCode::SUCCESS);
        let broken = outcome(AllocationKind::Leases, 1);
        check(&[even, broken], ExitCode::FAILURE);
    }
}
