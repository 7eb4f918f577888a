//! Charts of runs, in a folder.

use std::io::Write;
use std::path::Path;

use crate::chart::Chart;
use anyhow::Context as _;

use crate::lab::charts::{self, Name, NotDrawn};
use crate::lab::comparison::Comparison;
use crate::lab::traffic::Traffic;

/// Draws each algorithm's counts once, because no store changes them, and the allowed requests of
/// each run.
pub(super) fn draw(
    folder: &Path,
    comparison: &Comparison,
    err: &mut impl Write,
) -> anyhow::Result<()> {
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
                    writeln!(err, "{slug}.svg is not drawn: {error}")?;
                }
            }
        }
        let rate = comparison.input.rate;
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
    writeln!(
        err,
        "\nThe charts are in {}{}",
        folder.display(),
        whose(&comparison.traffic)
    )?;
    Ok(())
}

/// Returns which client the charts show, where there are several.
pub(super) fn whose(traffic: &Traffic) -> String {
    if traffic.clients() < 2 {
        return String::new();
    }
    let client = traffic.busiest();
    match traffic.names.get(client as usize) {
        // Escape the name, so that bytes of a file do not control the terminal.
        Some(name) => format!(
            "; they show the busiest client, \"{}\"",
            name.escape_debug()
        ),
        None => "; they show the busiest client".to_owned(),
    }
}
