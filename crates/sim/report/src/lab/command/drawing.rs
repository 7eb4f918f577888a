//! Charts of runs, in a folder.

use std::path::Path;

use crate::chart::Chart;
use anteroom_config::terminal::tell;
use anyhow::Context as _;

use super::Comparison;
use crate::lab::charts::{self, Name, NotDrawn};
use crate::lab::traffic::Traffic;

/// A chart of what each algorithm counts, which no store changes, and one of what each run
/// admitted.
pub(super) fn draw(folder: &Path, comparison: &Comparison) -> anyhow::Result<()> {
    let Comparison { traffic, runs, .. } = comparison;
    let mut drawn: Vec<Chart> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let name = Name::of(run.algorithm.name(), &run.policy);
        let is_first = runs[..at].iter().all(|other| other.policy != run.policy);
        if is_first {
            let slug = format!("counts-{}", name.slug);
            match charts::counts(&slug, run.algorithm.name(), &run.policy, traffic) {
                Ok(chart) => drawn.push(chart),
                Err(NotDrawn::NoCounts) => {}
                Err(error @ NotDrawn::LimitUnseen { .. }) => {
                    tell(&format!("{slug}.svg is not drawn: {error}"));
                }
            }
        }
        let rate = comparison.asked.rate;
        drawn.push(charts::admissions(
            run.store.word(),
            &name,
            rate,
            &run.outcome,
            traffic,
        ));
    }
    let files = drawn.iter();
    let files = files.map(|chart| (folder.join(&chart.file_name), chart.svg.as_str()));
    crate::chart::files::write_files(folder, files.collect(), &[])
        .context("cannot write the charts")?;
    tell(&format!(
        "\nThe charts are in {}{}",
        folder.display(),
        whose(&comparison.traffic)
    ));
    Ok(())
}

/// Charts show one client; which one is only of interest where there are several.
pub(super) fn whose(traffic: &Traffic) -> String {
    if traffic.clients() < 2 {
        return String::new();
    }
    let client = traffic.busiest();
    match traffic.names.get(client as usize) {
        // A file's bytes are not for the terminal to obey.
        Some(name) => format!(
            "; they show the busiest client, \"{}\"",
            name.escape_debug()
        ),
        None => "; they show the busiest client".to_owned(),
    }
}
