//! Cargo and its subcommands, as child processes.
//!
//! Each command is printed before it runs, so that a log shows what to repeat. [`crate::steps`] has
//! the commands.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::workspace;

/// Returns a Cargo command in the root of the workspace; it is not started.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(workspace::cargo_program());
    command.current_dir(workspace::root()).args(arguments);
    command
}

/// Prints a command as it could be typed.
pub(crate) fn announce(arguments: &[&str]) {
    println!("$ {}", displayed(arguments));
}

/// Prints a command with an environment variable as it could be typed.
pub(crate) fn announce_with(variable: &str, value: &str, arguments: &[&str]) {
    println!("$ {variable}='{value}' {}", displayed(arguments));
}

fn displayed(arguments: &[&str]) -> String {
    format!("cargo {}", arguments.join(" "))
}

/// Runs `cargo <arguments>` and forwards its output.
///
/// # Errors
///
/// If it cannot be started or fails.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    announce(arguments);
    finish(command(arguments), arguments)
}

/// Runs `cargo <arguments>` and returns its standard output. Its standard error is forwarded.
///
/// # Errors
///
/// Those of [`run`], and if the output is not UTF-8.
pub(crate) fn read(arguments: &[&str]) -> anyhow::Result<String> {
    // On standard error: a program may read standard output.
    eprintln!("$ {}", displayed(arguments));
    let output = command(arguments)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", displayed(arguments)))?;
    if !output.status.success() {
        bail!("{} failed ({})", displayed(arguments), output.status);
    }
    String::from_utf8(output.stdout).context("reading its output")
}

/// Runs `cargo <arguments>` with an environment variable set.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn run_with(variable: &str, value: &str, arguments: &[&str]) -> anyhow::Result<()> {
    announce_with(variable, value, arguments);
    let mut command = command(arguments);
    command.env(variable, value);
    finish(command, arguments)
}

fn finish(mut command: Command, arguments: &[&str]) -> anyhow::Result<()> {
    let name = arguments.first().copied().unwrap_or_default();
    let status = command
        .status()
        .with_context(|| format!("starting cargo {name}"))?;
    if !status.success() {
        bail!("cargo {name} failed ({status})");
    }
    Ok(())
}

/// Returns whether the subcommand `name` (such as `nextest`) is installed.
pub(crate) fn has(name: &str) -> bool {
    command(&[name, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
