//! Writer of a report: one page, and each chart as a file for slides.

use std::path::{Path, PathBuf};

pub use crate::chart::files::WriteError as ReportError;
use crate::chart::files::write_files;
use anteroom_sim::outcome::Outcome;
use anteroom_sim::scenario::model::Scenario;

use crate::charts::charts;
use crate::page::{self, Section};
use crate::variant::Variant;

/// Most rooms and settings with charts. A sweep can have dozens, of up to ten charts each; the page
/// must be readable and fit into a mail.
const DRAWN_MAX: usize = 8;

/// Writes `index.html` and one SVG file for each chart into `folder`, which it creates if
/// necessary, and returns the path of the page. The page contains all charts itself and can be
/// mailed.
///
/// It overwrites files of an earlier report, and no others.
///
/// # Errors
///
/// Returns [`ReportError`] when the folder or a file cannot be written, or when another file exists
/// at its path. In the last case nothing has been written yet.
pub fn write_html(
    folder: &Path,
    scenario: &Scenario,
    outcomes: &[Outcome],
) -> Result<PathBuf, ReportError> {
    let sections: Vec<Section<'_>> = Variant::all(outcomes)
        .into_iter()
        .enumerate()
        .map(|(at, variant)| Section {
            charts: if at < DRAWN_MAX {
                charts(&variant, &(at + 1).to_string())
            } else {
                Vec::new()
            },
            variant,
        })
        .collect();
    let page = folder.join("index.html");
    let html = page::page(scenario, outcomes, &sections);
    let drawn = sections.iter().flat_map(|section| &section.charts);
    let mut files: Vec<(PathBuf, &str)> = drawn
        .map(|chart| (folder.join(&chart.file_name), &*chart.svg))
        .collect();
    // The page comes last, so that it exists only with all of its charts.
    files.push((page.clone(), &html));
    write_files(folder, files, &[page::MARK])?;
    Ok(page)
}
