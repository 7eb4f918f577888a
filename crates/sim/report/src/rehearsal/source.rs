//! Source of the scenario, and the settings on it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anteroom_config::{Problem, Problems};
use anteroom_sim::scenario::file::{FILE_BYTES_MAX, ScenarioText};
use anteroom_sim::scenario::model::Scenario;
use anteroom_sim::scenario::settings::{self, Setting};
use anteroom_sim::scenario::shipped::{SHIPPED, Shipped};
use anyhow::Context as _;

use super::SimulateOptions;

/// Scenario with the values of `--set`.
pub(super) struct Variant {
    pub(super) scenario: Scenario,
    /// Keys and values, as typed.
    pub(super) settings: Vec<(String, String)>,
}

/// Source of a scenario.
pub(super) enum Source {
    /// Part of the program.
    Shipped(Shipped),
    /// File with the path that was typed.
    File { path: String, text: String },
}

impl Source {
    /// Finds a shipped scenario, or reads a file.
    pub(super) fn open(wanted: &str) -> anyhow::Result<Self> {
        if let Some(shipped) = Shipped::find(wanted) {
            return Ok(Self::Shipped(shipped));
        }
        let path = Path::new(wanted);
        if !path.exists() {
            let hint = match Shipped::nearest(wanted) {
                Some(name) => format!("did you mean {name}?"),
                None => "`anteroom simulate --list` shows the ready-made ones".to_owned(),
            };
            anyhow::bail!("{wanted}: no such file, and no scenario of that name; {hint}");
        }
        let text = read(path).with_context(|| format!("{wanted}: cannot read the file"))?;
        Ok(Self::File {
            path: wanted.to_owned(),
            text,
        })
    }

    /// Returns the text of the scenario.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Shipped(shipped) => shipped.text,
            Self::File { text, .. } => text,
        }
    }

    fn scenario_text(&self) -> ScenarioText<'_> {
        match self {
            Self::Shipped(shipped) => shipped.text(),
            Self::File { path, text } => {
                let file = Path::new(path);
                let stem = file.file_stem().and_then(|stem| stem.to_str());
                ScenarioText {
                    source: path,
                    name: stem.unwrap_or("scenario"),
                    text,
                    folder: Some(file.parent().unwrap_or_else(|| Path::new(""))),
                }
            }
        }
    }

    /// Returns one scenario for each combination of settings; at least one.
    pub(super) fn variants(&self, options: &SimulateOptions) -> Result<Vec<Variant>, Vec<String>> {
        let combinations = settings::combinations(&options.set)
            .map_err(|error| vec![format!("--set: {error}")])?;
        let mut problems: Vec<Problem> = Vec::new();
        let mut variants = Vec::with_capacity(combinations.len());
        for combination in combinations {
            let mut all = flags(options);
            all.extend(combination.iter().cloned());
            match self.scenario_text().read(&all) {
                Ok(scenario) => variants.push(Variant {
                    scenario,
                    settings: combination.into_iter().map(|s| (s.key, s.value)).collect(),
                }),
                // A mistake of the file is in every combination.
                Err(Problems(more)) => {
                    for problem in more {
                        if !problems.contains(&problem) {
                            problems.push(problem);
                        }
                    }
                }
            }
        }
        if problems.is_empty() {
            Ok(variants)
        } else {
            Err(problems.iter().map(Problem::to_string).collect())
        }
    }
}

/// Returns the flags that stand for keys of the file.
fn flags(options: &SimulateOptions) -> Vec<Setting> {
    let setting = |source, key: &str, value: &str| Setting {
        source,
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let mut all = Vec::new();
    if !options.allocation.is_empty() {
        // The words have no quotes, because the command line accepts no others.
        let list = format!("{:?}", options.allocation);
        all.push(setting("--allocation", "compare", &list));
    }
    if let Some(seed) = &options.seed {
        all.push(setting("--seed", "seed", seed));
    }
    if let Some(length) = &options.length {
        all.push(setting("--length", "length", length));
    }
    all
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    // One byte more than is allowed, so that the reader sees that the file is too long.
    let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the shipped scenarios with their descriptions.
pub(super) fn list() -> String {
    let mut text = String::new();
    for shipped in SHIPPED {
        let _ = writeln!(text, "{}", shipped.name);
        // A test reads them all.
        if let Ok(scenario) = shipped.scenario() {
            push_wrapped(&mut text, &scenario.about);
        }
    }
    text.push_str("\nRun one with `anteroom simulate NAME`.\n");
    text
}

/// Breaks lines at spaces, within 100 columns.
fn push_wrapped(text: &mut String, paragraph: &str) {
    const WIDTH: usize = 100;
    const INDENT: &str = "    ";
    let mut line = INDENT.to_owned();
    for word in paragraph.split_whitespace() {
        let is_begun = line.len() > INDENT.len();
        if is_begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line.truncate(INDENT.len());
        } else if is_begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
