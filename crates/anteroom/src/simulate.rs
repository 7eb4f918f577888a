//! `anteroom simulate`: a rehearsal, and exit code 2 like every command where what was given has
//! mistakes.

use std::process::ExitCode;

use anteroom_report::rehearsal::Rehearsed;
pub use anteroom_report::rehearsal::SimulateOptions;

use crate::check::{EXIT_BAD_CONFIG, Report};

/// Rehearses a scenario and prints what came out.
///
/// # Errors
///
/// If a file cannot be read or the report cannot be written.
pub fn run(options: &SimulateOptions) -> anyhow::Result<ExitCode> {
    Ok(match anteroom_report::rehearsal::run(options)? {
        Rehearsed::Done(code) => code,
        Rehearsed::Mistaken(lines) => {
            Report::of(lines).print();
            ExitCode::from(EXIT_BAD_CONFIG)
        }
    })
}
