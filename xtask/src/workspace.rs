//! Where is the workspace, and what does it consist of?
//!
//! Only the part of `cargo metadata` that the checks read; not a general model of Cargo.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// The Cargo that runs us, or else the first on the path.
pub(crate) fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// What `cargo metadata` says.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// The members.
    pub(crate) packages: Vec<Package>,
}

/// One package.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its `Cargo.toml`.
    pub(crate) manifest_path: PathBuf,
    /// As written in its `Cargo.toml`, of all kinds: normal, dev and build.
    pub(crate) dependencies: Vec<Dependency>,
    /// Its libraries, programs, examples and tests.
    #[cfg(test)]
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
}

/// Something that Cargo builds from a package.
#[cfg(test)]
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
}

/// One line of a `[dependencies]` table.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or nothing for a normal one.
    pub(crate) kind: Option<String>,
    /// Set if it is a folder, not a download.
    pub(crate) path: Option<String>,
}

/// The folder that holds the root `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder inside the workspace")
}

/// Asks Cargo which packages this workspace has. Needs no network.
///
/// # Errors
///
/// When Cargo cannot be run, refuses, or answers with something else than its format 1.
pub(crate) fn metadata() -> anyhow::Result<Metadata> {
    let mut command = Command::new(cargo_program());
    command
        .current_dir(root())
        .args(["metadata", "--format-version", "1", "--no-deps"]);
    let output = command.output().context("running cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("reading what cargo metadata printed")?;
    // A check that looks at nothing would pass.
    ensure!(
        !metadata.packages.is_empty(),
        "cargo metadata lists no packages"
    );
    Ok(metadata)
}

/// Returns the number of commits, or 0 where Git knows none.
pub(crate) fn commits() -> usize {
    let count = git(&["rev-list", "--count", "HEAD"]);
    count.trim().parse().unwrap_or_default()
}

/// Returns the files that differ from the last commit, from the root of the workspace.
pub(crate) fn changed_files() -> BTreeSet<String> {
    let names = git(&["diff", "--name-only", "--relative", "HEAD"]);
    names.lines().map(str::to_owned).collect()
}

/// Returns what Git prints; nothing where the source is in no repository.
fn git(arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = command.current_dir(root()).args(arguments).output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}
