//! `anteroom simulate`: what would happen? The gateway's own code under a simulated crowd.
//!
//! Chooses the scenario, what is changed about it, and how the outcome is shown; what happens in
//! between is not known here. It opens no socket and needs no runtime.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::lab::command::LimitsOptions;
use crate::lab::printing::{check_folder, write_story};
use crate::story;
use anteroom_config::terminal::{print, tell};
use anteroom_config::time_text::rfc3339_millis;
use anteroom_config::words;
use anteroom_room::rules::AllocationKind;
use anteroom_sim::outcome::Outcome;
use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

mod runs;
mod source;

/// What became of a rehearsal.
#[derive(Debug)]
pub enum Rehearsed {
    /// It is over, with this exit code: 1 if `leases` broke a promise.
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
    /// A scenario file, or the name of a ready-made scenario
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "story"])]
    scenario: Option<String>,
    /// List the ready-made scenarios
    #[arg(long, conflicts_with_all = ["scenario", "print"])]
    list: bool,
    /// Print the scenario's file, to begin your own with, and run nothing
    #[arg(long)]
    print: bool,
    /// Change a value of the scenario; several values, or the same key again, are compared
    #[arg(long, value_name = "KEY=VALUE[,VALUE]")]
    set: Vec<String>,
    /// Compare only this way of sharing slots among nodes; may be given several times
    #[arg(long, value_name = "ALLOCATION", value_parser = PossibleValuesParser::new(ALLOCATIONS))]
    allocation: Vec<String>,
    /// Another throw of the dice; the same seed gives the same run
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// Rehearse only this long, such as 10m
    #[arg(long, value_name = "DURATION")]
    length: Option<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Also write a page with charts into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print why there are four allocations, with figures from this program's own code, and write
    /// that text and its charts into this folder; run nothing else
    #[arg(long, value_name = "DIR", exclusive = true)]
    story: Option<PathBuf>,
}

/// What else can be simulated.
#[derive(Clone, Debug, Subcommand)]
enum Other {
    /// Compare how well limits of calls count: the algorithms on the same traffic, beside the truth
    Limits(LimitsOptions),
}

const ALLOCATIONS: [&str; 4] = ["even", "curve", "counters", "leases"];

const EXAMPLES: &str = "\
Look at what is there, and run one:
  anteroom simulate --list
  anteroom simulate flash-sale
What if the limit were another one, or the crowd twice as large?
  anteroom simulate flash-sale --set room.sale.new_users_per_minute=900
  anteroom simulate flash-sale --allocation leases \\
      --set room.sale.new_users_per_minute=600,900,1200
  anteroom simulate flash-sale --set 'room.sale.arrivals[2].times=2'
Your own: begin with one that resembles it, put your figures in, show it to others
  anteroom simulate flash-sale --print > friday.toml
  anteroom simulate friday.toml --out friday && open friday/index.html
Limits of calls:
  anteroom simulate limits --help
A setting is a path of keys as in the file; elements of lists are counted from 1. Everything about
visitors is an assumption, and the origin is not simulated.
Exit code: 0, or 1 if leases broke a promise, or 2 if the scenario has mistakes.";

/// Rehearses a scenario and prints what came out.
///
/// # Errors
///
/// If a file cannot be read or the report cannot be written.
pub fn run(options: &SimulateOptions) -> anyhow::Result<Rehearsed> {
    if let Some(Other::Limits(options)) = &options.other {
        crate::lab::command::run(options)?;
        return Ok(Rehearsed::Done(ExitCode::SUCCESS));
    }
    if let Some(folder) = &options.story {
        write_story(folder, story::tell)?;
        return Ok(Rehearsed::Done(ExitCode::SUCCESS));
    }
    let Some(wanted) = options.scenario.as_deref() else {
        print(&source::list())?;
        return Ok(Rehearsed::Done(ExitCode::SUCCESS));
    };
    let source = source::Source::open(wanted)?;
    if options.print {
        print(source.text())?;
        return Ok(Rehearsed::Done(ExitCode::SUCCESS));
    }
    let variants = match source.variants(options) {
        Ok(variants) => variants,
        Err(mistakes) => return Ok(Rehearsed::Mistaken(mistakes)),
    };
    if let Some(folder) = &options.out {
        check_folder("--out", folder)?;
    }
    let jobs = runs::jobs(&variants)?;
    let outcomes = runs::run(&variants, &jobs);
    let scenario = &variants[0].scenario;
    if options.json {
        print(&format!("{}\n", crate::json(scenario, &outcomes)))?;
    } else {
        print(&crate::table(&outcomes))?;
    }
    if let Some(folder) = &options.out {
        let page =
            crate::write_html(folder, scenario, &outcomes).context("cannot write the report")?;
        tell(&format!("\nThe report is in {}", page.display()));
    }
    Ok(Rehearsed::Done(judge(&outcomes)))
}

/// Says which promises `leases` broke; the others make none.
fn judge(outcomes: &[Outcome]) -> ExitCode {
    let mut is_kept = true;
    for outcome in outcomes {
        if outcome.allocation != AllocationKind::Leases {
            continue;
        }
        if let Some(first) = outcome.violations.first() {
            is_kept = false;
            tell(&format!(
                "error: room \"{}\": {} broke a promise {} times, first at {}: {:?}: {}",
                outcome.room,
                words::allocation(outcome.allocation),
                outcome.violations.len(),
                rfc3339_millis(outcome.starts_at + anteroom_room::time::DurationMs(first.at_ms)),
                first.promise,
                first.seen
            ));
        }
    }
    if is_kept {
        return ExitCode::SUCCESS;
    }
    tell("this must not happen; please report it with the scenario and its seed");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use anteroom_room::rules::Limits;
    use anteroom_room::time::{DurationMs, Timestamp};
    use anteroom_sim::outcome::{Figures, Promise, Violation};

    use super::*;

    fn outcome(allocation: AllocationKind, violations: usize) -> Outcome {
        let violation = Violation {
            promise: Promise::Seats,
            at_ms: 1_500,
            seen: "201 of 200 inside".to_owned(),
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
            stats: Figures::default(),
            samples: Vec::new(),
            data_centers: Vec::new(),
            violations: vec![violation; violations],
        }
    }

    #[test]
    fn only_a_promise_that_leases_broke_fails_the_command() {
        let check = |outcomes: &[Outcome], expected: ExitCode| {
            // An exit code can be shown, not compared.
            assert_eq!(format!("{:?}", judge(outcomes)), format!("{expected:?}"));
        };
        let even = outcome(AllocationKind::Even, 3);
        let leases = outcome(AllocationKind::Leases, 0);
        check(&[even.clone(), leases], ExitCode::SUCCESS);
        let broken = outcome(AllocationKind::Leases, 1);
        check(&[even, broken], ExitCode::FAILURE);
    }
}
