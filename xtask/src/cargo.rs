//! How do we run Cargo and its subcommands?
//!
//! Prints each command before it runs, so that a log shows what to repeat. Decides nothing about
//! which commands there are; see [`crate::steps`].

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::workspace;

/// The Cargo that runs us, or else the first on the path.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A Cargo command in the root of the workspace, not started yet.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.current_dir(workspace::root()).args(arguments);
    command
}

/// Prints a command as it could be typed.
pub(crate) fn announce(arguments: &[&str]) {
    println!("$ {}", typed(arguments));
}

/// Prints a command with an environment variable as it could be typed.
pub(crate) fn announce_with(variable: &str, value: &str, arguments: &[&str]) {
    println!("$ {variable}='{value}' {}", typed(arguments));
}

fn typed(arguments: &[&str]) -> String {
    format!("cargo {}", arguments.join(" "))
}

/// Runs `cargo <arguments>` and lets its output through.
///
/// # Errors
///
/// When it cannot be started or ends with anything but success.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    announce(arguments);
    finish(command(arguments), arguments)
}

/// Runs `cargo <arguments>` and returns what it prints on standard output. What it says meanwhile,
/// on standard error, is let through.
///
/// # Errors
///
/// As [`run`], and when what it prints is not UTF-8.
pub(crate) fn read(arguments: &[&str]) -> anyhow::Result<String> {
    // Aside: what comes next on standard output may be for a program to read.
    eprintln!("$ {}", typed(arguments));
    let output = command(arguments)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", typed(arguments)))?;
    if !output.status.success() {
        bail!("{} failed ({})", typed(arguments), output.status);
    }
    String::from_utf8(output.stdout).context("reading what it printed")
}

/// Runs `cargo <arguments>` with an environment variable set.
///
/// # Errors
///
/// As [`run`].
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

/// Whether the subcommand `name` (such as `nextest`) is installed.
pub(crate) fn has(name: &str) -> bool {
    command(&[name, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
