//! Runner of the steps of `cargo xtask test`: times them, and prints the command that repeats a
//! failure.
//!
//! [`crate::steps`] has the steps. All steps of a group run before a failure stops the run, so that
//! all cheap findings are reported at once.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::ahead;
use crate::counters::TestCounts;
use crate::requirements;
use crate::step::{Outcome, Run, Scope, Step};
use crate::steps::STEPS;
use crate::stopwatch::Stopwatch;

/// Number of the slowest tests that are printed: the first candidates for shortening.
const SLOWEST: usize = 10;

/// Selection of steps.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask test                           run what a person waits for
  cargo xtask test --all                     run everything; so does CI=true in the environment
  cargo xtask test --only tests              run one step; --list names all of them
  cargo xtask test --all --only mutations    run all parts of one step

The summary has the times of all steps, the slowest tests, and what was left out.")]
pub(crate) struct Options {
    /// Run all steps and tests, and more runs of clusters and mutations in turn. Otherwise most of
    /// these and long fuzz tests are left out. A variable CI in the environment means the same.
    #[arg(long)]
    all: bool,
    /// Run this step only; may be given several times.
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

/// Results of a run.
struct Report {
    run: Run,
    /// Time of each step that ran.
    times: Vec<(&'static str, Duration)>,
    /// Steps that passed or were skipped.
    finished: Vec<(&'static str, Outcome)>,
    /// Steps that failed; after one, later groups do not run.
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

/// Runs the selected steps.
///
/// # Errors
///
/// If a step failed; the message has the command that repeats it.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut report = Report::new(options.scope(std::env::var_os("CI").as_deref()));
    let is_selected = |step: &&Step| options.only.is_empty() || options.names(step);
    let selected = STEPS.iter().filter(is_selected);
    let (steps, left_out): (Vec<&Step>, Vec<&Step>) = selected.partition(|step| {
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
    println!("\n{}", summary(&report, clock.elapsed()));
    if let Some(repeat) = command_to_repeat(&report) {
        let not_run = steps.len() - report.finished.len() - report.failed.len();
        bail!("stopped with {not_run} steps left; after the fix, repeat: {repeat}");
    }
    Ok(())
}

/// Runs steps group by group, until a group has failed.
fn run_steps(steps: &[&Step], report: &mut Report) {
    let mut later = steps;
    for group in steps.chunk_by(|a, b| a.group == b.group) {
        for step in group {
            later = &later[1..];
            report.run.builds = ahead::commands(later);
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

/// Formats the summary: times, skipped steps with reasons, and counts.
fn summary(report: &Report, took: Duration) -> String {
    let mut text = "steps, slowest first:\n".to_owned();
    let mut times = report.times.clone();
    times.sort_by_key(|(_, took)| Reverse(*took));
    for (name, took) in times {
        text.push_str(&format!("  {:>7.1} s  {name}\n", took.as_secs_f32()));
    }
    let counters = &report.run.counters;
    let slowest = counters.slowest(SLOWEST);
    if !slowest.is_empty() {
        text.push_str("slowest tests:\n");
    }
    for (name, took) in slowest {
        text.push_str(&format!("  {:>7.1} s  {name}\n", took.as_secs_f32()));
    }
    if !report.run.left_out.is_empty() {
        text.push_str("left out (`cargo xtask test --all` or CI=true runs it):\n");
    }
    for item in &report.run.left_out {
        text.push_str(&format!("  {item}\n"));
    }
    for (name, outcome) in &report.finished {
        if let Outcome::Skipped(why) = outcome {
            text.push_str(&format!("skipped {name}: {why}\n"));
        }
    }
    if *counters != TestCounts::default() {
        text.push_str(&format!("tests: {counters}\n"));
    }
    let finished = report.finished.iter();
    let passed = finished.filter(|(_, outcome)| *outcome == Outcome::Passed);
    let (passed, failed) = (passed.count(), report.failed.len());
    let seconds = took.as_secs();
    text + &format!("steps: {passed} passed, {failed} failed, in {seconds} s")
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
    fn a_failed_group_completes_and_then_the_run_stops() {
        let report = report_of(&[
            step("first", "bad", |_| bail!("broken")),
            step("first", "good", |_| Ok(Outcome::Passed)),
            step("second", "never", |_| Ok(Outcome::Passed)),
        ]);
        assert_eq!(report.failed, ["bad"]);
        assert_eq!(report.finished, [("good", Outcome::Passed)]);
    }

    #[test]
    fn everything_runs_on_request_and_on_build_servers() {
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
    fn the_message_has_the_command_that_repeats_failed_steps() {
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
    fn the_summary_has_times_skips_omissions_and_counts() {
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
            summary(&report, Duration::from_secs(3)),
            "steps, slowest first:\n      2.5 s  counted\n      0.0 s  absent\n\
             left out (`cargo xtask test --all` or CI=true runs it):\n  a long test\n\
             skipped absent: no tool\ntests: 7 passed, 0 failed, 0 skipped\n\
             steps: 1 passed, 0 failed, in 3 s"
        );
    }
}
