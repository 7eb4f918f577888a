//! Figures that the repository keeps, to notice a request that has become more expensive.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::Counts;

/// Part of a figure by which a count may be above it. Two runs differ by less than 1 %; the rest is
/// for other versions of the compiler and the C library.
const ABOVE_MAX: f64 = 0.05;

/// Allocations by which a count may be above it besides. Some requests find buffers that are too
/// small, which depends on how requests arrive: runs differ by a third of one.
const MALLOCS_ABOVE_MAX: f64 = 0.5;

/// Variable that has the file written, as for other files that tests compare.
const UPDATE: &str = "ANTEROOM_UPDATE";

/// Counts of each case.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Figures {
    /// Profile of the build that was counted.
    profile: String,
    per_request: BTreeMap<String, Counts>,
}

impl Figures {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file);
        let text = text.with_context(|| format!("reading the figures in {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| format!("parsing {}", file.display()))
    }

    /// Compares counts with the figures, or writes them.
    ///
    /// # Errors
    ///
    /// If a count is too far above its figure, or has none.
    pub(super) fn check(
        mut self,
        file: &Path,
        counted: &BTreeMap<String, Counts>,
    ) -> anyhow::Result<()> {
        if std::env::var(UPDATE).is_ok_and(|value| value == "1") {
            for (name, counts) in counted {
                self.per_request.insert(name.clone(), counts.rounded());
            }
            let text = serde_json::to_string_pretty(&self)? + "\n";
            return fs::write(file, text).with_context(|| format!("writing {}", file.display()));
        }
        let problems = self.problems(counted);
        if problems.is_empty() {
            eprintln!(
                "no count is more than {:.0} % above its figure",
                100.0 * ABOVE_MAX
            );
            return Ok(());
        }
        bail!(
            "requests cost more than {} says (profile {}):\n{}\n\
             if the cost is worth it, update the file with {UPDATE}=1",
            file.display(),
            self.profile,
            problems.join("\n")
        )
    }

    fn problems(&self, counted: &BTreeMap<String, Counts>) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, counts) in counted {
            let Some(figures) = self.per_request.get(name) else {
                problems.push(format!("{name}: the file has no figures"));
                continue;
            };
            for (what, count, figure, more) in [
                (
                    "instructions",
                    counts.instructions,
                    figures.instructions,
                    0.0,
                ),
                (
                    "mallocs",
                    counts.mallocs,
                    figures.mallocs,
                    MALLOCS_ABOVE_MAX,
                ),
                (
                    "system calls",
                    counts.system_calls,
                    figures.system_calls,
                    0.0,
                ),
            ] {
                if count - more > figure * (1.0 + ABOVE_MAX) {
                    problems.push(format!("{name}: {count:.2} {what}, was {figure:.2}"));
                }
            }
        }
        problems
    }
}

impl Counts {
    /// Returns counts without digits that differ from run to run.
    fn rounded(self) -> Self {
        Self {
            instructions: self.instructions.round(),
            mallocs: (self.mallocs * 100.0).round() / 100.0,
            system_calls: (self.system_calls * 100.0).round() / 100.0,
            waits: (self.waits * 100.0).round() / 100.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: f64, mallocs: f64) -> Counts {
        Counts {
            instructions,
            mallocs,
            system_calls: 4.0,
            waits: 1.0,
        }
    }

    #[test]
    fn counts_far_above_their_figures_are_problems() {
        let mut figures = Figures::default();
        let name = "through".to_owned();
        figures
            .per_request
            .insert(name.clone(), counts(1_000.0, 10.0));
        let problems = |counts| figures.problems(&BTreeMap::from([(name.clone(), counts)]));
        assert!(problems(counts(1_049.0, 2.0)).is_empty());
        assert!(problems(counts(1_000.0, 10.9)).is_empty());
        assert_eq!(
            problems(counts(1_060.0, 11.1)),
            [
                "through: 1060.00 instructions, was 1000.00",
                "through: 11.10 mallocs, was 10.00"
            ]
        );
        let other = BTreeMap::from([("poll".to_owned(), counts(1.0, 1.0))]);
        assert_eq!(figures.problems(&other), ["poll: the file has no figures"]);
    }
}
