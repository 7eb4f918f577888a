//! `cargo xtask test`: runs the steps, times them, and says what to repeat.
//!
//! What the steps are is in [`crate::steps`]. A group of steps runs to its end before a failure
//! stops the run: one look shows everything that is cheap to find out.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::requirements;
use crate::steps::{Outcome, STEPS, Step};
use crate::stopwatch::Stopwatch;
use crate::tally::Tally;

/// Which steps to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Run this step alone; may be given several times.
    #[arg(
        long,
        value_name = "STEP",
        value_parser = PossibleValuesParser::new(STEPS.iter().map(|step| step.name)),
    )]
    only: Vec<String>,
    /// List the steps instead of running them.
    #[arg(long)]
    list: bool,
}

/// What happened.
#[derive(Default)]
struct Report {
    tally: Tally,
    /// Steps that ran to a good end, or said why they did not run.
    finished: Vec<(&'static str, Outcome)>,
    /// Steps that failed. If there is one, later groups did not run.
    failed: Vec<&'static str>,
}

/// Runs the steps that were asked for.
///
/// # Errors
///
/// When a step failed; the message is the command that repeats it.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let is_chosen =
        |step: &Step| options.only.is_empty() || options.only.iter().any(|name| name == step.name);
    let steps: Vec<&Step> = STEPS.iter().filter(|step| is_chosen(step)).collect();
    if options.list {
        for step in steps {
            println!("{:<10} {:<10} {}", step.group, step.name, step.finds);
        }
        return Ok(());
    }
    let clock = Stopwatch::start();
    let report = run_steps(&steps);
    println!("\n{}", closing_words(&report, clock.elapsed()));
    if let Some(repeat) = command_to_repeat(&report.failed) {
        let not_run = steps.len() - report.finished.len() - report.failed.len();
        bail!("stopped with {not_run} steps left; after mending, repeat: {repeat}");
    }
    Ok(())
}

/// Runs steps group by group, until a group has failed.
fn run_steps(steps: &[&Step]) -> Report {
    let mut report = Report::default();
    for group in steps.chunk_by(|a, b| a.group == b.group) {
        for step in group {
            run_step(step, &mut report);
        }
        if !report.failed.is_empty() {
            break;
        }
    }
    report
}

fn run_step(step: &Step, report: &mut Report) {
    println!("\n== {}: {} ==", step.group, step.name);
    let clock = Stopwatch::start();
    let outcome = requirements::ensure(step.needs).and_then(|()| (step.run)(&mut report.tally));
    let took = clock.elapsed().as_secs_f32();
    match outcome {
        Ok(Outcome::Passed) => println!("== {}: passed in {took:.1} s ==", step.name),
        Ok(Outcome::Skipped(why)) => println!("== {}: SKIPPED: {why} ==", step.name),
        Err(ref error) => println!("== {}: FAILED in {took:.1} s: {error:#} ==", step.name),
    }
    match outcome {
        Ok(outcome) => report.finished.push((step.name, outcome)),
        Err(_) => report.failed.push(step.name),
    }
}

/// The last lines: what passed, what did not run and why, and how many tests there were.
fn closing_words(report: &Report, took: Duration) -> String {
    let is_passed = |outcome: &Outcome| *outcome == Outcome::Passed;
    let passed = report
        .finished
        .iter()
        .filter(|(_, outcome)| is_passed(outcome));
    let mut words = format!(
        "steps: {} passed, {} failed, in {} s",
        passed.count(),
        report.failed.len(),
        took.as_secs()
    );
    for (name, outcome) in &report.finished {
        if let Outcome::Skipped(why) = outcome {
            words.push_str(&format!("\nskipped {name}: {why}"));
        }
    }
    if report.tally != Tally::default() {
        words.push_str(&format!("\ntests: {}", report.tally));
    }
    words
}

fn command_to_repeat(failed: &[&str]) -> Option<String> {
    if failed.is_empty() {
        return None;
    }
    let only: Vec<String> = failed
        .iter()
        .map(|name| format!(" --only {name}"))
        .collect();
    Some(format!("cargo xtask test{}", only.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn step(
        group: &'static str,
        name: &'static str,
        run: fn(&mut Tally) -> anyhow::Result<Outcome>,
    ) -> Step {
        Step {
            group,
            name,
            finds: "nothing",
            needs: &[],
            run,
        }
    }

    #[test]
    fn a_group_runs_to_its_end_and_then_the_run_stops() {
        let steps = [
            step("first", "bad", |_| bail!("broken")),
            step("first", "good", |_| Ok(Outcome::Passed)),
            step("second", "never", |_| Ok(Outcome::Passed)),
        ];
        let report = run_steps(&steps.iter().collect::<Vec<_>>());
        assert_eq!(report.failed, ["bad"]);
        assert_eq!(report.finished, [("good", Outcome::Passed)]);
    }

    #[test]
    fn the_message_names_the_command_that_repeats_what_failed() {
        let repeat = command_to_repeat(&["fmt", "tidy"]);
        assert_eq!(
            repeat.as_deref(),
            Some("cargo xtask test --only fmt --only tidy")
        );
        assert_eq!(command_to_repeat(&[]), None);
    }

    #[test]
    fn a_skipped_step_and_the_count_of_tests_stand_at_the_end() {
        let steps = [
            step("first", "counted", |tally| {
                tally.passed = 7;
                Ok(Outcome::Passed)
            }),
            step("first", "absent", |_| Ok(Outcome::Skipped("no tool"))),
        ];
        let report = run_steps(&steps.iter().collect::<Vec<_>>());
        assert_eq!(
            closing_words(&report, Duration::from_secs(3)),
            "steps: 1 passed, 0 failed, in 3 s\nskipped absent: no tool\n\
             tests: 7 passed, 0 failed, 0 skipped"
        );
    }
}
