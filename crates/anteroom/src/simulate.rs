//! `anteroom simulate`: a simulation, with exit code 2 for mistakes in the scenario.

use std::io::Write;
use std::process::ExitCode;

pub use anteroom_report::rehearsal::SimulateOptions;
use anteroom_report::rehearsal::SimulateResult;

use crate::check::{EXIT_BAD_CONFIG, Report};

/// Simulates a scenario and prints the outcome.
///
/// # Errors
///
/// If a file cannot be read or the report cannot be written.
pub fn run(
    options: &SimulateOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    Ok(match anteroom_report::rehearsal::run(options, out, err)? {
        SimulateResult::Done(code) => code,
        SimulateResult::Mistaken(lines) => {
            Report::of(lines).print(err)?;
            ExitCode::from(EXIT_BAD_CONFIG)
        }
    })
}
