//! Where does the report go? Into a folder: one page, and each chart as a file for slides.

use std::path::{Path, PathBuf};

pub use crate::chart::files::WriteError as ReportError;
use crate::chart::files::write_files;
use anteroom_sim::outcome::Outcome;
use anteroom_sim::scenario::model::Scenario;

use crate::charts::charts;
use crate::page::{self, Section};
use crate::variant::Variant;

/// Rooms and settings whose charts are drawn. A sweep can have dozens, of up to ten charts each;
/// nobody looks through more, and the page should still fit into a mail.
const DRAWN_MAX: usize = 8;

/// Writes `index.html` and one SVG file for each chart into `folder`, which is made if it is not
/// there, and returns the path of the page. The page holds all charts itself and can be mailed.
///
/// Files of an earlier report are overwritten; others never are.
///
/// # Errors
///
/// [`ReportError`] when the folder or a file cannot be written, or when a file is in the way that
/// no report has written; in this last case nothing has been written yet.
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
    // Last, so that a page is only there when all of its charts are.
    files.push((page.clone(), &html));
    write_files(folder, files, &[page::MARK])?;
    Ok(page)
}
