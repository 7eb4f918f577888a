//! `cargo xtask test`: runs the steps, times them, and says what to repeat.
//!
//! What the steps are is in [`crate::steps`]. A group of steps runs to its end before a failure
//! stops the run: one look shows everything that is cheap to find out.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::counters::Tally;
use crate::requirements;
use crate::step::{Outcome, Run, Scope, Step};
use crate::steps::STEPS;
use crate::stopwatch::Stopwatch;

/// How many of the slowest tests are named: those that a person would shorten first.
const SLOWEST: usize = 10;

/// Which steps to run.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask test                           what a person waits for
  cargo xtask test --all                     everything; so does CI=true in the environment
  cargo xtask test --only tests              one step; --list names all of them
  cargo xtask test --all --only mutations    one step, and all that belongs to it

At the end stand the times of all steps, the slowest tests, and what was left out.")]
pub(crate) struct Options {
    /// Run everything: most runs of clusters, long fuzz tests and most mutations are left out
    /// otherwise. A variable CI in the environment means the same.
    #[arg(long)]
    all: bool,
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

impl Options {
    fn scope(&self, ci: Option<&OsStr>) -> Scope {
        let is_ci = ci.is_some_and(|ci| !ci.is_empty() && ci != "false");
        if self.all || is_ci {
            Scope::All
        } else {
            Scope::Usual
        }
    }

    fn names(&self, step: &Step) -> bool {
        self.only.iter().any(|name| name == step.name)
    }
}

/// What happened.
struct Report {
    run: Run,
    /// How long each step took that ran.
    times: Vec<(&'static str, Duration)>,
    /// Steps that ran to a good end, or said why they did not run.
    finished: Vec<(&'static str, Outcome)>,
    /// Steps that failed. If there is one, later groups did not run.
    failed: Vec<&'static str>,
}

impl Report {
    fn new(scope: Scope) -> Self {
        Self {
            run: Run::new(scope),
            times: Vec::new(),
            finished: Vec::new(),
            failed: Vec::new(),
        }
    }
}

/// Runs the steps that were asked for.
///
/// # Errors
///
/// When a step failed; the message is the command that repeats it.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut report = Report::new(options.scope(std::env::var_os("CI").as_deref()));
    let is_asked_for = |step: &&Step| options.only.is_empty() || options.names(step);
    let asked_for = STEPS.iter().filter(is_asked_for);
    let (steps, left_out): (Vec<&Step>, Vec<&Step>) = asked_for.partition(|step| {
        report.run.scope == Scope::All || step.scope == Scope::Usual || options.names(step)
    });
    if options.list {
        for step in steps.iter().chain(&left_out) {
            println!("{:<10} {:<10} {}", step.group, step.name, step.finds);
        }
        return Ok(());
    }
    let left_out = left_out.iter();
    let left_out = left_out.map(|step| format!("step {}: {}", step.name, step.finds));
    report.run.left_out.extend(left_out);
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    println!("steps: {}", names.join(", "));
    let clock = Stopwatch::start();
    run_steps(&steps, &mut report);
    println!("\n{}", closing_words(&report, clock.elapsed()));
    if let Some(repeat) = command_to_repeat(&report) {
        let not_run = steps.len() - report.finished.len() - report.failed.len();
        bail!("stopped with {not_run} steps left; after mending, repeat: {repeat}");
    }
    Ok(())
}

/// Runs steps group by group, until a group has failed.
fn run_steps(steps: &[&Step], report: &mut Report) {
    for group in steps.chunk_by(|a, b| a.group == b.group) {
        for step in group {
            run_step(step, report);
        }
        if !report.failed.is_empty() {
            break;
        }
    }
}

fn run_step(step: &Step, report: &mut Report) {
    println!("\n== {}: {} ==", step.group, step.name);
    let clock = Stopwatch::start();
    let outcome = requirements::ensure(step.needs).and_then(|()| (step.run)(&mut report.run));
    let took = clock.elapsed();
    report.times.push((step.name, took));
    let seconds = took.as_secs_f32();
    match outcome {
        Ok(Outcome::Passed) => println!("== {}: passed in {seconds:.1} s ==", step.name),
        Ok(Outcome::Skipped(why)) => println!("== {}: SKIPPED: {why} ==", step.name),
        Err(ref error) => println!("== {}: FAILED in {seconds:.1} s: {error:#} ==", step.name),
    }
    match outcome {
        Ok(outcome) => report.finished.push((step.name, outcome)),
        Err(_) => report.failed.push(step.name),
    }
}

/// The last lines: how long everything took, what did not run and why, what passed.
fn closing_words(report: &Report, took: Duration) -> String {
    let mut words = "steps, slowest first:\n".to_owned();
    let mut times = report.times.clone();
    times.sort_by_key(|(_, took)| Reverse(*took));
    for (name, took) in times {
        words.push_str(&format!("  {:>7.1} s  {name}\n", took.as_secs_f32()));
    }
    let counters = &report.run.counters;
    let slowest = counters.slowest(SLOWEST);
    if !slowest.is_empty() {
        words.push_str("slowest tests:\n");
    }
    for (name, took) in slowest {
        words.push_str(&format!("  {:>7.1} s  {name}\n", took.as_secs_f32()));
    }
    if !report.run.left_out.is_empty() {
        words.push_str("left out (`cargo xtask test --all` or CI=true runs it):\n");
    }
    for what in &report.run.left_out {
        words.push_str(&format!("  {what}\n"));
    }
    for (name, outcome) in &report.finished {
        if let Outcome::Skipped(why) = outcome {
            words.push_str(&format!("skipped {name}: {why}\n"));
        }
    }
    if *counters != Tally::default() {
        words.push_str(&format!("tests: {counters}\n"));
    }
    let finished = report.finished.iter();
    let passed = finished.filter(|(_, outcome)| *outcome == Outcome::Passed);
    let (passed, failed) = (passed.count(), report.failed.len());
    let seconds = took.as_secs();
    words + &format!("steps: {passed} passed, {failed} failed, in {seconds} s")
}

fn command_to_repeat(report: &Report) -> Option<String> {
    if report.failed.is_empty() {
        return None;
    }
    let all = match report.run.scope {
        Scope::All => " --all",
        Scope::Usual => "",
    };
    let failed = report.failed.iter();
    let only: Vec<String> = failed.map(|name| format!(" --only {name}")).collect();
    Some(format!("cargo xtask test{all}{}", only.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn step(
        group: &'static str,
        name: &'static str,
        run: fn(&mut Run) -> anyhow::Result<Outcome>,
    ) -> Step {
        Step {
            group,
            name,
            finds: "nothing",
            needs: &[],
            scope: Scope::Usual,
            run,
        }
    }

    fn report_of(steps: &[Step]) -> Report {
        let mut report = Report::new(Scope::Usual);
        run_steps(&steps.iter().collect::<Vec<_>>(), &mut report);
        report
    }

    #[test]
    fn a_group_runs_to_its_end_and_then_the_run_stops() {
        let report = report_of(&[
            step("first", "bad", |_| bail!("broken")),
            step("first", "good", |_| Ok(Outcome::Passed)),
            step("second", "never", |_| Ok(Outcome::Passed)),
        ]);
        assert_eq!(report.failed, ["bad"]);
        assert_eq!(report.finished, [("good", Outcome::Passed)]);
    }

    #[test]
    fn everything_runs_where_it_is_asked_for_and_on_build_servers() {
        let check = |all: bool, ci: Option<&str>, expected: Scope| {
            let (only, list) = (Vec::new(), false);
            let options = Options { all, only, list };
            assert_eq!(options.scope(ci.map(OsStr::new)), expected, "{all}, {ci:?}");
        };
        check(false, None, Scope::Usual);
        check(true, None, Scope::All);
        check(false, Some("true"), Scope::All);
        check(false, Some("1"), Scope::All);
        check(false, Some("false"), Scope::Usual);
        check(false, Some(""), Scope::Usual);
    }

    #[test]
    fn the_message_names_the_command_that_repeats_what_failed() {
        let mut report = Report::new(Scope::Usual);
        assert_eq!(command_to_repeat(&report), None);
        report.failed = vec!["fmt", "tidy"];
        let repeat = command_to_repeat(&report);
        let expected = "cargo xtask test --only fmt --only tidy";
        assert_eq!(repeat.as_deref(), Some(expected));
        report.run.scope = Scope::All;
        let repeat = command_to_repeat(&report);
        let expected = "cargo xtask test --all --only fmt --only tidy";
        assert_eq!(repeat.as_deref(), Some(expected));
    }

    #[test]
    fn times_skips_omissions_and_counts_stand_at_the_end() {
        let mut report = report_of(&[
            step("first", "counted", |run| {
                run.counters.passed = 7;
                run.left_out.push("a long test".to_owned());
                Ok(Outcome::Passed)
            }),
            step("first", "absent", |_| Ok(Outcome::Skipped("no tool"))),
        ]);
        report.times = vec![
            ("absent", Duration::ZERO),
            ("counted", Duration::from_millis(2_500)),
        ];
        assert_eq!(
            closing_words(&report, Duration::from_secs(3)),
            "steps, slowest first:\n      2.5 s  counted\n      0.0 s  absent\n\
             left out (`cargo xtask test --all` or CI=true runs it):\n  a long test\n\
             skipped absent: no tool\ntests: 7 passed, 0 failed, 0 skipped\n\
             steps: 1 passed, 0 failed, in 3 s"
        );
    }
}
