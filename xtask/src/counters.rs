//! Counts and times of tests, read from the output of a test runner, which is forwarded.
//!
//! Understands the summaries of cargo-nextest and of the standard test harness, and the line of
//! cargo-nextest for each test. The runner's exit code decides whether a run failed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

/// Longest time for which output may stay open after the runner has ended. The pipe closes with the
/// last process that holds it, so a longer time means that a test left a process running. Ten
/// seconds suffice for a slow machine, and a process that is left running does not block the build.
const LEFTOVER_OUTPUT: Duration = Duration::from_secs(10);

/// Counts of all test binaries, and the time of each test.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct TestCounts {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed, or were stopped because they took too long.
    pub(crate) failed: u64,
    /// Tests that were not run.
    pub(crate) skipped: u64,
    /// Time of each test, if the runner reports it.
    times: BTreeMap<String, Duration>,
}

impl TestCounts {
    /// Adds the counts and the times of another run.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.times.extend(other.times);
    }

    /// Returns the tests that took longest, slowest first.
    pub(crate) fn slowest(&self, count: usize) -> Vec<(&str, Duration)> {
        let times = self.times.iter();
        let mut times: Vec<_> = times.map(|(name, took)| (name.as_str(), *took)).collect();
        times.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        times.truncate(count);
        times
    }

    /// Adds the time of a test, or the counts of a summary.
    fn read_line(&mut self, line: &str) {
        let line = without_colours(line);
        if let Some((name, took)) = parse_time(&line) {
            self.times.insert(name.to_owned(), took);
            return;
        }
        // A summary of the harness is not indented. An indented one is nextest's output of a failed
        // test, which nextest's own summary includes.
        if !line.trim_start().starts_with("Summary [") && !line.starts_with("test result:") {
            return;
        }
        for piece in line.split([',', ';', ':', '.', '(', ')']) {
            let Some((number, word)) = piece.trim().split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            let counter = match word.trim() {
                "passed" => &mut self.passed,
                "failed" | "timed out" | "exec failed" => &mut self.failed,
                "skipped" | "ignored" => &mut self.skipped,
                _ => continue,
            };
            *counter = counter.saturating_add(number);
        }
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Parses the line of one test, such as `PASS [   1.204s] (  3/2617) anteroom::e2e demo::a_shop`;
/// `None` for a test that still runs, which has a `>` before the time.
fn parse_time(line: &str) -> Option<(&str, Duration)> {
    let (status, rest) = line.trim().split_once(" [")?;
    let is_status = status.split(' ').all(|word| {
        let mut letters = word.chars();
        letters.all(|letter| letter.is_ascii_uppercase() || letter == '-')
    });
    let (seconds, name) = rest.split_once("s] ")?;
    let seconds: f64 = seconds.trim().parse().ok()?;
    let name = match name.trim().strip_prefix('(') {
        Some(numbered) => numbered.split_once(") ")?.1,
        None => name,
    };
    let took = Duration::try_from_secs_f64(seconds).ok()?;
    is_status.then_some((name.trim(), took))
}

/// Runs a test command and forwards its output to `to`. Returns its counts and whether it
/// succeeded.
///
/// # Errors
///
/// If it cannot be started, or a process that a test started still holds its output after the
/// runner has ended.
pub(crate) fn run_counted(
    command: Command,
    to: impl Write + Send + 'static,
) -> anyhow::Result<(TestCounts, bool)> {
    run_counted_within(command, to, LEFTOVER_OUTPUT)
}

fn run_counted_within(
    mut command: Command,
    mut to: impl Write + Send + 'static,
    leftover: Duration,
) -> anyhow::Result<(TestCounts, bool)> {
    // The runner sees a pipe and would omit colours, which a terminal shows.
    if io::stdout().is_terminal() && std::env::var_os("CARGO_TERM_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let (reader, writer) = io::pipe().context("making a pipe for test output")?;
    let second = writer
        .try_clone()
        .context("making a pipe for test output")?;
    command.stdout(writer).stderr(second);
    let mut child = command.spawn().context("starting the tests")?;
    // It holds the write ends of the pipe: without this the reader would never end.
    drop(command);

    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // Without a receiver the timeout was reported already.
        let _ = sender.send(forward(reader, &mut to));
    });
    let status = child.wait().context("waiting for the tests")?;
    match receiver.recv_timeout(leftover) {
        Ok(counters) => Ok((
            counters.context("forwarding test output")?,
            status.success(),
        )),
        Err(_) => bail!(
            "the tests have ended ({status}), but a process that one of them started is still \
             running; end it in the test"
        ),
    }
}

/// Copies `from` to `to` unchanged, and counts line by line.
fn forward(from: impl Read, to: &mut impl Write) -> io::Result<TestCounts> {
    let mut counters = TestCounts::default();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        counters.read_line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(counters)
}

/// Removes colour sequences (escape, `[`, numbers, a letter).
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // `by_ref`: the rest of the line follows the letter.
            let _ = characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, passed: u64, failed: u64, skipped: u64) {
        let mut copy = Vec::new();
        let counters = forward(output.as_bytes(), &mut copy).unwrap();
        let expected = TestCounts {
            passed,
            failed,
            skipped,
            times: BTreeMap::new(),
        };
        assert_eq!(counters, expected, "{output}");
        assert_eq!(copy, output.as_bytes(), "output goes through unchanged");
    }

    #[test]
    fn summaries_of_both_runners_are_counted() {
        check(
            "Summary [   0.123s] 1 test run: 1 passed, 2 skipped\n",
            1,
            0,
            2,
        );
        check(
            "     Summary [  10.5s] 12/15 tests run: 9 passed (1 slow, 1 leaky), 1 failed, 2 \
             timed out, 3 skipped",
            9,
            3,
            3,
        );
        check(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished \
             in 0.00s\n",
            3,
            0,
            1,
        );
    }

    #[test]
    fn several_test_binaries_are_summed() {
        let line =
            "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out\n";
        check(&line.repeat(2), 6, 4, 2);
    }

    #[test]
    fn other_lines_are_ignored() {
        check("test it ... ok\nwe saw 5 passed, 6 failed\n\n", 0, 0, 0);
        check("Summary [", 0, 0, 0);
        check("test result: 99999999999999999999999 passed", 0, 0, 0);
    }

    #[test]
    fn a_failed_test_in_the_output_of_nextest_is_not_counted_twice() {
        check(
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored\n     Summary [ 0.2s] 1 test \
             run: 0 passed, 1 failed, 0 skipped\n",
            0,
            1,
            0,
        );
    }

    #[test]
    fn the_slowest_tests_come_first() {
        let output = "        PASS [   0.006s] (   1/2617) anteroom a::b\n\
                      \x20       SLOW [> 30.000s] (─────────) anteroom::e2e c::d\n\
                      \x20       FAIL [  31.271s] (   2/2617) anteroom::e2e c::d\n\
                      \x20       PASS [   1.500s] anteroom-e2e::it e::f\n\
                      \x20    Summary [  32.000s] 3 tests run: 2 passed, 1 failed, 0 skipped\n\
                      \x20       FAIL [  31.271s] (   2/2617) anteroom::e2e c::d\n";
        let counters = forward(output.as_bytes(), &mut io::sink()).unwrap();
        let slowest = counters.slowest(2);
        let expected = [
            ("anteroom::e2e c::d", Duration::from_millis(31_271)),
            ("anteroom-e2e::it e::f", Duration::from_millis(1_500)),
        ];
        assert_eq!(slowest, expected);
        assert_eq!((counters.passed, counters.failed), (2, 1));
    }

    #[test]
    fn colours_do_not_hide_the_counts() {
        check(
            "\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m2\u{1b}[0m tests run: \
             \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m skipped\n",
            2,
            0,
            0,
        );
    }

    #[test]
    fn a_failing_command_is_reported_with_its_counts() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo 'test result: FAILED. 1 passed; 1 failed' >&2; exit 1",
        ]);
        let (counters, succeeded) = run_counted(command, io::sink()).unwrap();
        assert_eq!((counters.passed, counters.failed, succeeded), (1, 1, false));
    }

    #[test]
    fn a_process_that_outlives_the_tests_is_an_error_without_a_wait() {
        let mut command = Command::new("sh");
        // Holds the output for longer than the test takes, and ends soon after.
        command.args(["-c", "sleep 5 &"]);
        let error = run_counted_within(command, io::sink(), Duration::from_millis(1)).unwrap_err();
        assert!(error.to_string().contains("is still running"), "{error}");
    }
}
