//! Pages of `docs` that stories write.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anteroom_report::chart::story::Story;

/// Longest page that a reader reads to its end, in lines.
const PAGE_LINES_MAX: usize = 200;

pub(crate) fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

/// Fails unless `docs` has the pages and charts of the story, and no other charts. With
/// `ANTEROOM_UPDATE` set it writes them first.
pub(crate) fn check(story: &Story) {
    if env::var_os("ANTEROOM_UPDATE").is_some() {
        story.write(&docs()).expect("the docs can be written");
    }
    let rewrite = "this test with ANTEROOM_UPDATE=1 writes it; look at the difference";
    let read = |file: &Path| fs::read_to_string(file).unwrap_or_default();
    for page in &story.pages {
        let (file, expected) = (format!("{}.md", page.name), &page.markdown);
        let found = read(&docs().join(&file));
        let mut lines = found.lines().zip(expected.lines());
        let first = lines.find(|(found, expected)| found != expected);
        assert!(
            found == *expected,
            "docs/{file} is out of date, first at {first:#?}; {rewrite}"
        );
        let lines = expected.lines().count();
        assert!(lines <= PAGE_LINES_MAX, "docs/{file} has {lines} lines");
    }
    let (text, name) = (story.markdown(), story.name);
    let folder = docs().join(name);
    for (chart, svg) in &story.charts {
        let is_current = read(&folder.join(chart)) == *svg;
        assert!(is_current, "docs/{name}/{chart} is out of date; {rewrite}");
        assert!(!svg.contains('…'), "{chart} has a text that is cut off");
        let link = format!("]({name}/{chart})");
        assert!(text.contains(&link), "no page shows {chart}");
    }
    let files = fs::read_dir(folder).expect("the charts have a folder");
    assert_eq!(
        files.count(),
        story.charts.len(),
        "docs/{name} has files that no page shows"
    );
}
