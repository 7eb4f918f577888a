//! Reader of the operator's own waiting page.

use std::path::PathBuf;

use super::keys::{CUSTOM_PAGE_FILE, CUSTOM_PAGE_HTML};
use crate::checks::Checks;
use crate::model::PageTemplate;
use crate::problem::Finding;
use crate::reader::Table;

/// Reads the page or its path; `None` if there is none.
pub(super) fn read_template(table: &mut Table<'_>, checks: Checks) -> Option<PageTemplate> {
    let html = table.optional(&CUSTOM_PAGE_HTML);
    let path = table.optional(&CUSTOM_PAGE_FILE);
    let location = table.location(CUSTOM_PAGE_FILE.name);
    if html.is_some() && path.is_some() {
        let finding = Finding::Remark("found together with custom_page_html".to_owned());
        table
            .notes
            .report(&location, finding, "one of the two", None);
    }
    if let Some(html) = &html {
        check(table, html, checks);
    }
    let file = |path: String| PageTemplate::File {
        path: PathBuf::from(path),
        line: location.line,
    };
    html.map(PageTemplate::Html).or_else(|| path.map(file))
}

fn check(table: &mut Table<'_>, html: &str, checks: Checks) {
    let location = table.location(CUSTOM_PAGE_HTML.name);
    for (line, mistake) in (checks.template)(html) {
        let finding = Finding::Remark(format!("line {line} of the template: {mistake}"));
        table.notes.report(&location, finding, "", None);
    }
}
