//! What stands in the file of a mutation?
//!
//! A few lines for people, then a unified diff. The lines are read here; the diff is for Git.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};

use crate::workspace;

/// Where the files are, from the root of the workspace.
const FOLDER: &str = "crates/sim/engine/mutations";

const RULE: &str = "Rule:";
const NOTICED_BY: &str = "Noticed by:";
const KEYS: [&str; 2] = [RULE, NOTICED_BY];

/// A rule removed on purpose, to see that a checker notices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Mutation {
    /// The name of the file, without its end.
    pub(super) name: String,
    /// The rule that is removed.
    pub(super) rule: String,
    /// Names of the promises that may break first.
    checkers: Vec<String>,
    /// The source files that are changed, from the root of the workspace.
    pub(super) files: Vec<String>,
}

/// What the seeds have shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Found {
    /// Every promise was kept.
    Nothing,
    /// A promise was broken.
    Broken {
        /// The first seed that broke one.
        seed: u64,
        /// The name of the promise, or `Assertion`.
        checker: String,
    },
}

impl Mutation {
    /// Reads the lines above the diff, and which files the diff changes.
    ///
    /// # Errors
    ///
    /// When the rule, the checkers or the diff are missing.
    pub(super) fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let (header, diff) = text
            .split_once("\ndiff --git ")
            .context("no line starts with `diff --git`")?;
        let field = |key: &str| {
            let mut lines = header.lines().skip_while(|line| !line.starts_with(key));
            let first = lines.next()?.strip_prefix(key)?;
            // It may go on on the next line.
            let more = lines.take_while(|line| !KEYS.iter().any(|key| line.starts_with(key)));
            let all: Vec<_> = [first].into_iter().chain(more).map(str::trim).collect();
            Some(all.join(" ").trim().to_owned())
        };
        let rule = field(RULE).context("no line starts with `Rule:`")?;
        let checkers = field(NOTICED_BY).context("no line starts with `Noticed by:`")?;
        let checkers: Vec<_> = checkers.split(',').map(str::trim).collect();
        ensure!(!rule.is_empty(), "`Rule:` says nothing");
        ensure!(!checkers.contains(&""), "`Noticed by:` lacks a name");
        let files = diff.lines().filter_map(|line| line.strip_prefix("+++ b/"));
        Ok(Self {
            name: name.to_owned(),
            rule,
            checkers: checkers.into_iter().map(str::to_owned).collect(),
            files: files.map(str::to_owned).collect(),
        })
    }

    /// Whether a checker has noticed, and one that the file names.
    pub(super) fn expects(&self, found: &Found) -> bool {
        matches!(found, Found::Broken { checker, .. } if self.checkers.contains(checker))
    }

    /// The checkers, for people.
    pub(super) fn noticed_by(&self) -> String {
        self.checkers.join(", ")
    }

    /// Where the file is.
    pub(super) fn path(&self) -> PathBuf {
        let file = format!("{}.patch", self.name);
        workspace::root().join(FOLDER).join(file)
    }
}

/// Reads all mutations, by name.
///
/// # Errors
///
/// When a file cannot be read or understood, and when there is none.
pub(super) fn read_all() -> anyhow::Result<Vec<Mutation>> {
    let mut all = Vec::new();
    let folder = workspace::root().join(FOLDER);
    for entry in fs::read_dir(folder).context("listing the mutations")? {
        let path = entry.context("listing the mutations")?.path();
        let reading = || format!("reading {}", path.display());
        let text = fs::read_to_string(&path).with_context(reading)?;
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_suffix(".patch"));
        let name = name.context("it is not called <name>.patch");
        all.push(Mutation::parse(name.with_context(reading)?, &text).with_context(reading)?);
    }
    // Trying nothing would pass.
    ensure!(!all.is_empty(), "no mutations in {FOLDER}");
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}
