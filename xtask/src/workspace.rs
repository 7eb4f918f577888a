//! Root and packages of the workspace, and its state in Git.
//!
//! Only the fields of `cargo metadata` that the checks read are here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// Returns the Cargo that runs this program, or else the first on the path.
pub(crate) fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Output of `cargo metadata`.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// Members of the workspace.
    pub(crate) packages: Vec<Package>,
}

/// Package of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of its `Cargo.toml`.
    pub(crate) manifest_path: PathBuf,
    /// Dependencies of all kinds: normal, dev and build.
    pub(crate) dependencies: Vec<Dependency>,
    /// Libraries, programs, examples and tests.
    #[cfg(test)]
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
}

/// Build target of a package.
#[cfg(test)]
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
}

/// Dependency of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Kind: `dev`, `build`, or `None` for a normal one.
    pub(crate) kind: Option<String>,
    /// Path, if it is a folder and not a download.
    pub(crate) path: Option<String>,
}

/// Returns the folder of the root `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder inside the workspace")
}

/// Reads the packages of this workspace from Cargo, without network access.
///
/// # Errors
///
/// If Cargo cannot be run, fails, or prints another format than 1.
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
        serde_json::from_slice(&output.stdout).context("reading the output of cargo metadata")?;
    // A check without packages would pass.
    ensure!(
        !metadata.packages.is_empty(),
        "cargo metadata lists no packages"
    );
    Ok(metadata)
}

/// Returns the number of commits; 0 outside of a repository.
pub(crate) fn commits() -> usize {
    let count = git(&["rev-list", "--count", "HEAD"]);
    count.trim().parse().unwrap_or_default()
}

/// Returns the files that differ from the last commit, and those that the newest `commits` changed.
/// Paths are from the root of the workspace.
pub(crate) fn changed_files(commits: u32) -> BTreeSet<String> {
    let mut names = git(&["diff", "--name-only", "--relative", "HEAD"]);
    let count = format!("--max-count={commits}");
    names += &git(&["log", &count, "--format=", "--name-only", "--relative"]);
    names.lines().map(str::to_owned).collect()
}

/// Returns the output of Git; empty outside of a repository.
fn git(arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = command.current_dir(root()).args(arguments).output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}
