//! Files of mutations.
//!
//! A file has a few lines for people, then a unified diff. The lines are parsed here; Git applies
//! the diff.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};

use crate::workspace;

/// Folder of the files, from the root of the workspace.
const FOLDER: &str = "crates/sim/engine/mutations";

const RULE: &str = "Rule:";
const NOTICED_BY: &str = "Noticed by:";
const KEYS: [&str; 2] = [RULE, NOTICED_BY];

/// Patch that removes a rule, to test that a checker notices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Mutation {
    /// Name of the file, without its extension.
    pub(super) name: String,
    /// Rule that is removed.
    pub(super) rule: String,
    /// Names of the invariants that may break first.
    checkers: Vec<String>,
    /// Source files that are changed, from the root of the workspace.
    pub(super) files: Vec<String>,
}

/// Result of the seeds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Found {
    /// Every invariant held.
    Nothing,
    /// An invariant broke.
    Broken {
        /// First seed that broke one.
        seed: u64,
        /// Name of the invariant, or `Assertion`.
        checker: String,
    },
}

impl Mutation {
    /// Parses the lines above the diff, and the names of the files that the diff changes.
    ///
    /// # Errors
    ///
    /// If the rule, the checkers or the diff are missing.
    pub(super) fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let (header, diff) = text
            .split_once("\ndiff --git ")
            .context("no line starts with `diff --git`")?;
        let field = |key: &str| {
            let mut lines = header.lines().skip_while(|line| !line.starts_with(key));
            let first = lines.next()?.strip_prefix(key)?;
            // The value may continue on the next line.
            let more = lines.take_while(|line| !KEYS.iter().any(|key| line.starts_with(key)));
            let all: Vec<_> = [first].into_iter().chain(more).map(str::trim).collect();
            Some(all.join(" ").trim().to_owned())
        };
        let rule = field(RULE).context("no line starts with `Rule:`")?;
        let checkers = field(NOTICED_BY).context("no line starts with `Noticed by:`")?;
        let checkers: Vec<_> = checkers.split(',').map(str::trim).collect();
        ensure!(!rule.is_empty(), "`Rule:` has no text");
        ensure!(!checkers.contains(&""), "`Noticed by:` lacks a name");
        let files = diff.lines().filter_map(|line| line.strip_prefix("+++ b/"));
        Ok(Self {
            name: name.to_owned(),
            rule,
            checkers: checkers.into_iter().map(str::to_owned).collect(),
            files: files.map(str::to_owned).collect(),
        })
    }

    /// Returns whether a checker that the file names noticed.
    pub(super) fn expects(&self, found: &Found) -> bool {
        matches!(found, Found::Broken { checker, .. } if self.checkers.contains(checker))
    }

    /// Returns the names of the checkers, for people.
    pub(super) fn noticed_by(&self) -> String {
        self.checkers.join(", ")
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> PathBuf {
        let file = format!("{}.patch", self.name);
        workspace::root().join(FOLDER).join(file)
    }
}

/// Reads all mutations, sorted by name.
///
/// # Errors
///
/// If a file cannot be read or parsed, or there is none.
pub(super) fn read_all() -> anyhow::Result<Vec<Mutation>> {
    let mut all = Vec::new();
    let folder = workspace::root().join(FOLDER);
    for entry in fs::read_dir(folder).context("listing the mutations")? {
        let path = entry.context("listing the mutations")?.path();
        let reading = || format!("reading {}", path.display());
        let text = fs::read_to_string(&path).with_context(reading)?;
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_suffix(".patch"));
        let name = name.context("the file is not named <name>.patch");
        all.push(Mutation::parse(name.with_context(reading)?, &text).with_context(reading)?);
    }
    // A run without mutations would pass.
    ensure!(!all.is_empty(), "no mutations in {FOLDER}");
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}
