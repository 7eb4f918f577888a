//! Rules about links between pages, and about the summary of the book.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::problem::Problem;
use super::source::SourceFile;
use crate::workspace::root;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks that a relative link leads to an existing file or folder, and its fragment to a heading
/// there.
pub(super) fn link_target_is_missing(files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for page in files.iter().filter(|file| is_page(file)) {
        for (line, target) in links(page) {
            if let Some(what) = link_problem(files, &page.path, &target) {
                problems.push(Problem::new(
                    &page.path,
                    line,
                    what,
                    "link to the page or heading that replaced it",
                ));
            }
        }
    }
    problems
}

/// Checks that every page of the book is in its summary.
pub(super) fn page_is_not_in_summary(files: &[SourceFile]) -> Vec<Problem> {
    let Some(summary) = files.iter().find(|file| file.path == SUMMARY) else {
        return Vec::new();
    };
    let listed: BTreeSet<String> = links(summary)
        .into_iter()
        .filter_map(|(_, target)| resolved(SUMMARY, &target))
        .collect();
    let pages = files.iter().filter(|file| is_page(file));
    let pages = pages.filter(|file| file.path.starts_with("docs/") && file.path != SUMMARY);
    pages
        .filter(|file| !listed.contains(&file.path))
        .map(|file| {
            let what = "is not in docs/SUMMARY.md".to_owned();
            Problem::new(&file.path, 1, what, "add it where a reader looks for it")
        })
        .collect()
}

fn is_page(file: &SourceFile) -> bool {
    file.has_extension(&["md"]) && !file.is_sample()
}

/// Returns the problem of a link of a page.
fn link_problem(files: &[SourceFile], page: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        page.to_owned()
    } else {
        resolved(page, path).unwrap_or_default()
    };
    let known = files.iter().find(|file| file.path == path);
    if path.is_empty() || (known.is_none() && !root().join(&path).exists()) {
        return Some(format!("links to {target}, which does not exist"));
    }
    let has_heading = |file: &SourceFile| headings(file).contains(fragment);
    let is_found = fragment.is_empty() || known.is_none_or(has_heading);
    (!is_found).then(|| format!("links to {target}, which has no such heading"))
}

/// Resolves a link of a page to a path from the root; `None` above the root.
fn resolved(page: &str, target: &str) -> Option<String> {
    let folder = Path::new(page).parent()?;
    let target = target.split('#').next().unwrap_or_default();
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => path.pop().then_some(())?,
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    Some(path.to_string_lossy().into_owned())
}

/// Returns the targets of a page's links with their lines. A link may continue on the next line.
fn links(page: &SourceFile) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for line in prose(page) {
        // Text between backticks is code.
        for text in line.1.split('`').step_by(2) {
            for rest in text.split("](").skip(1) {
                if let Some((target, _)) = rest.split_once(')') {
                    links.push((line.0, target.to_owned()));
                }
            }
            if let Some(rest) = text.strip_prefix('(').filter(|_| line.2)
                && let Some((target, _)) = rest.split_once(')')
            {
                links.push((line.0, target.to_owned()));
            }
        }
    }
    links
}

/// Returns the lines outside of blocks of code, and whether the previous line ended in a closing
/// bracket.
fn prose(page: &SourceFile) -> Vec<(usize, &str, bool)> {
    let mut lines = Vec::new();
    let mut is_code = false;
    let mut is_continued = false;
    for line in &page.lines {
        let is_fence = line.text.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_code && !is_fence && !line.text.starts_with("    ") {
            lines.push((line.number, line.text.as_str(), is_continued));
        }
        is_continued = line.text.ends_with(']');
    }
    lines
}

/// Returns the fragments of a page's headings, as GitHub and mdBook create them.
fn headings(page: &SourceFile) -> BTreeSet<String> {
    let mut headings = BTreeSet::new();
    for (_, line, _) in prose(page) {
        let text = line.trim_start_matches('#');
        if text.len() < line.len() && text.starts_with(' ') {
            headings.insert(fragment_of(text.trim()));
        }
    }
    headings
}

fn fragment_of(heading: &str) -> String {
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    kept.collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, expected: &[&str]) {
        let page = SourceFile::new("docs/a/one.md", &format!("# One\n[x]({target})\n"));
        let other = SourceFile::new("docs/two.md", "# Two\n\n## `anteroom check` prints, all\n");
        let found = link_target_is_missing(&[page, other]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn a_link_to_a_missing_page_or_heading_is_found() {
        check("../two.md", &[]);
        check("../two.md#anteroom-check-prints-all", &[]);
        check("#one", &[]);
        check("https://example.com/three.md#x", &[]);
        check("../three.md", &["docs/a/one.md:2: links to ../three.md"]);
        check("../two.md#three", &["no such heading"]);
        check("#two", &["no such heading"]);
        check("../../../../two.md", &["which does not exist"]);
    }

    #[test]
    fn a_link_over_two_lines_is_read_unless_in_code() {
        let page = "a [b]\n(c.md) `[d](e.md)`\n\n    [f](g.md)\n\n```\n[h](i.md)\n```\n";
        let page = SourceFile::new("docs/a.md", page);
        assert_eq!(links(&page), [(2, "c.md".to_owned())]);
    }

    #[test]
    fn a_page_that_the_summary_lacks_is_found() {
        let summary = SourceFile::new(SUMMARY, "- [A](a/b.md)\n");
        let page = |path| SourceFile::new(path, "# A\n");
        let files = [
            summary,
            page("docs/a/b.md"),
            page("docs/c.md"),
            page("d.md"),
        ];
        let found = page_is_not_in_summary(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().starts_with("docs/c.md:1"));
    }
}
