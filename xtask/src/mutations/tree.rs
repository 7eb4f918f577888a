//! Copy of the workspace in which mutations are built; it is kept between runs.
//!
//! The copy is updated file by file: an unchanged file keeps its time, so that Cargo builds only
//! what has changed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::patch::{Found, Mutation};
use crate::{cargo, workspace};

/// Folder of the copy and its build, from the root of the workspace.
const FOLDER: &str = "target/mutations";

/// Entries that Cargo needs to read a workspace; also members that the simulator does not use.
const COPIED: [&str; 5] = ["Cargo.lock", "Cargo.toml", "crates", "fuzz", "xtask"];

/// Profile that runs thousands of seeds fast and builds fast: one mutation takes 2 to 12 s on two
/// cores, all of them three and a half minutes. Assertions of the core are off: a checker that
/// reads only tickets must notice without their help. Given on the command line, as no other build
/// uses it.
const PROFILE: [&str; 7] = [
    "inherits='release'",
    "opt-level=2",
    "codegen-units=16",
    "debug=false",
    "debug-assertions=false",
    "overflow-checks=true",
    "incremental=true",
];

/// Copy of the workspace, locked against other runs.
#[derive(Debug)]
pub(super) struct Tree {
    source: PathBuf,
    build: PathBuf,
    _lock: File,
}

impl Tree {
    /// Opens and updates the copy.
    ///
    /// # Errors
    ///
    /// If another run uses it, or files cannot be read or written.
    pub(super) fn open() -> anyhow::Result<Self> {
        let folder = workspace::root().join(FOLDER);
        let source = folder.join("tree");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let lock = File::create(folder.join("lock")).context("opening the lock of the copy")?;
        lock.try_lock()
            .with_context(|| format!("{FOLDER} is in use: wait for the other run to end"))?;
        let names = COPIED.iter().map(OsString::from).collect();
        sync(workspace::root(), &source, &names)?;
        Ok(Self {
            source,
            build: folder.join("build"),
            _lock: lock,
        })
    }

    /// Builds the simulator from the current copy.
    ///
    /// # Errors
    ///
    /// If it does not compile; the message is that of the compiler.
    pub(super) fn build(&self) -> anyhow::Result<()> {
        let mut command = cargo::command(&["build", "--quiet", "--profile", "mutations"]);
        command.args(["-p", "anteroom-sim", "--example", "seeds"]);
        for line in PROFILE {
            command.arg(format!("--config=profile.mutations.{line}"));
        }
        command.arg("--target-dir").arg(&self.build);
        // A build server may have switched it off, for builds that are the only ones.
        command.env("CARGO_INCREMENTAL", "1");
        run(command.current_dir(&self.source)).context("building the simulator")?;
        Ok(())
    }

    /// Runs seeds until an invariant breaks.
    ///
    /// # Errors
    ///
    /// If the simulator does not report a result.
    pub(super) fn run(&self, seeds: u64) -> anyhow::Result<Found> {
        let program = self.build.join("mutations/examples/seeds");
        let output = Command::new(program)
            .arg(format!("--seeds={seeds}"))
            .arg("--first")
            .output()
            .context("starting the simulator")?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().find_map(read_line).with_context(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("the simulator ended early ({}): {errors}", output.status)
        })
    }

    /// Applies a patch, runs `work`, and reverts the patch.
    ///
    /// # Errors
    ///
    /// If the patch does not apply, and those of `work`.
    pub(super) fn with<T>(
        &self,
        mutation: &Mutation,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let files = mutation.files.iter().map(|file| self.source.join(file));
        let read = |file: PathBuf| {
            let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            anyhow::Ok((file, bytes))
        };
        let before = files.map(read).collect::<anyhow::Result<Vec<_>>>()?;
        apply(mutation, &self.source, &[])?;
        let result = work();
        for (file, bytes) in before {
            // This sets a new time, so that Cargo builds the file again.
            fs::write(&file, bytes).with_context(|| format!("restoring {}", file.display()))?;
        }
        result
    }
}

/// Applies the patch of a mutation to the workspace in `root`.
///
/// # Errors
///
/// If it does not apply; nothing is changed then.
pub(super) fn apply(mutation: &Mutation, root: &Path, options: &[&str]) -> anyhow::Result<()> {
    let path = mutation.path();
    let mut command = Command::new("git");
    command.arg("apply").args(options).arg(&path);
    // In a folder of a repository Git silently skips files outside of that folder.
    if let Some(parent) = root.parent() {
        command.env("GIT_CEILING_DIRECTORIES", parent);
    }
    run(command.current_dir(root)).with_context(|| format!("applying {}", path.display()))
}

/// Runs a command. Its output is shown only if it fails: a patch leaves code unused, and the
/// compiler warns about that.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| {
        let program = command.get_program().display();
        format!("starting {program}")
    })?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Parses a line that the example `seeds` prints with `--first`.
pub(super) fn read_line(line: &str) -> Option<Found> {
    if line.starts_with("kept: ") {
        return Some(Found::Nothing);
    }
    let (seed, checker) = line.strip_prefix("broken: seed ")?.split_once(' ')?;
    Some(Found::Broken {
        seed: seed.parse().ok()?,
        checker: checker.to_owned(),
    })
}

/// Copies the entries `names` of a folder to another one: writes what differs, and removes other
/// entries.
pub(super) fn sync(from: &Path, to: &Path, names: &BTreeSet<OsString>) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    for name in entries(to)?.difference(names) {
        let path = to.join(name);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.with_context(|| format!("removing {}", path.display()))?;
    }
    for name in names {
        let (from, to) = (from.join(name), to.join(name));
        if from.is_dir() {
            sync(&from, &to, &entries(&from)?)?;
            continue;
        }
        let bytes = fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
        let is_same = fs::read(&to).is_ok_and(|there| there == bytes);
        if !is_same {
            fs::write(&to, bytes).with_context(|| format!("writing {}", to.display()))?;
        }
    }
    Ok(())
}

/// Returns the names of the entries of a folder.
pub(super) fn entries(folder: &Path) -> anyhow::Result<BTreeSet<OsString>> {
    let reading = || format!("listing {}", folder.display());
    let entries = fs::read_dir(folder).with_context(reading)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    names.collect::<Result<_, _>>().with_context(reading)
}
