//! Check of the pages that a template makes: each state is rendered and parsed.
//!
//! A remark is no mistake of the template: browsers show a page with odd HTML somehow. It has the
//! line of the template and the states in which it occurs.

mod html;

use anteroom_config::language::Language;

use super::scan::{self, Mistake};
use super::script::{BUTTON, PREFIX, is_filled};
use super::{CustomPage, MISTAKES_MAX};
use crate::page::html::Links;
use crate::page::states;
use crate::waiting::PATHS;
use html::{Element, Parsed};

/// Addresses of the rendered pages.
const LINKS: Links<'static> = Links {
    paths: &PATHS,
    query: "room=full&lang=en&back=%2F",
    back: "/",
    entry: "",
};

/// Mark around the number of a line. Templates have no control characters but line ends and tabs.
const MARK: char = '\u{1}';

/// Returns what is odd in the pages of a template, by line. Empty if the template has mistakes.
pub(super) fn remarks(source: &str) -> Vec<Mistake> {
    let Ok(page) = CustomPage::new(source) else {
        return Vec::new();
    };
    let Ok(numbered) = CustomPage::parsed(&numbered(source)) else {
        return Vec::new();
    };
    let mut found: Vec<(Mistake, Vec<&str>)> = Vec::new();
    for state in states::NAMES {
        let view = states::view(state, Language::English);
        let after_post = state == states::AFTER_POST;
        let lines = lines(&numbered.page(&view, LINKS, after_post).into_text());
        let parsed = html::parse(&page.page(&view, LINKS, after_post).into_text());
        for (line, message) in odd(parsed, page.has_script()) {
            let line = lines.get(line.saturating_sub(1)).copied().unwrap_or(1);
            let remark = Mistake { line, message };
            match found.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, states)) if states.last() == Some(&state) => {}
                Some((_, states)) => states.push(state),
                None => found.push((remark, vec![state])),
            }
        }
    }
    found.sort_by_key(|(remark, _)| remark.line);
    found.truncate(MISTAKES_MAX);
    let named = found.into_iter().map(|(remark, states)| Mistake {
        message: format!("{}: {}", in_states(&states), remark.message),
        ..remark
    });
    named.collect()
}

/// Describes states: all of them, or the first ones by name.
fn in_states(states: &[&str]) -> String {
    const NAMED_MAX: usize = 3;
    if states.len() == states::NAMES.len() {
        return "in every state".to_owned();
    }
    let named = states.iter().take(NAMED_MAX).copied();
    let named = named.collect::<Vec<_>>().join(", ");
    match states.len() {
        1 => format!("in the state {named}"),
        2..=NAMED_MAX => format!("in the states {named}"),
        all => format!("in the states {named} and {} more", all - NAMED_MAX),
    }
}

/// Returns the oddities of one page with the lines of the page.
fn odd(page: Parsed, has_script: bool) -> Vec<(usize, String)> {
    let mut odd = page.errors;
    // What seems to be missing may be behind the cut.
    if has_script && !page.is_cut {
        odd.extend(elements(&page.elements));
    }
    odd
}

/// Checks the elements that the script fills.
fn elements(all: &[Element]) -> Vec<(usize, String)> {
    let is_script = |element: &&Element| element.is_script_of_ours;
    let script = all.iter().position(|element| is_script(&element));
    let mut odd = Vec::new();
    if script.is_none() {
        let what = "{{{anteroomScript}}} is where no script runs, such as in a comment";
        odd.push((1, what.to_owned()));
    }
    let mut has_button = false;
    for (at, element) in all.iter().enumerate() {
        let Some(id) = element.id.strip_prefix(PREFIX) else {
            continue;
        };
        has_button |= id == BUTTON;
        let what = if !is_filled(id) {
            "the script fills no element with this id"
        } else if script.is_some_and(|script| at > script) {
            "this element is behind the script, which does not find it"
        } else {
            continue;
        };
        odd.push((element.line, format!("id {:?}: {what}", element.id)));
    }
    if !has_button {
        let line = all.iter().find(is_script).map_or(1, |script| script.line);
        let what = "is missing: a visitor whose turn comes in the background enters by it";
        odd.push((
            line,
            format!("an element with id \"{PREFIX}{BUTTON}\" {what}"),
        ));
    }
    odd
}

/// Returns a template whose lines begin with their numbers, except for those inside a tag.
fn numbered(source: &str) -> String {
    let mut numbered = String::with_capacity(source.len() * 2);
    let mut line = 1;
    let mut from = 0;
    let mut push = |text: &str, is_tag: bool| {
        for piece in text.split_inclusive('\n') {
            numbered.push_str(piece);
            if piece.ends_with('\n') {
                line += 1;
                if !is_tag {
                    numbered.push_str(&format!("{MARK}{line}{MARK}"));
                }
            }
        }
    };
    for tag in scan::tags(source).flatten() {
        push(&source[from..tag.range.start], false);
        push(&source[tag.range.clone()], true);
        from = tag.range.end;
    }
    push(&source[from..], false);
    numbered
}

/// Returns the line of the template for each line of a page with numbers.
fn lines(page: &str) -> Vec<usize> {
    let mut last = 1;
    let of_line = page.split('\n').map(|line| {
        let number = line
            .strip_prefix(MARK)
            .and_then(|rest| rest.split_once(MARK));
        last = number
            .and_then(|(number, _)| number.parse().ok())
            .unwrap_or(last);
        last
    });
    of_line.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a page with this body.
    fn page(body: &str) -> String {
        format!(
            "<!doctype html>\n<html lang=\"{{{{language}}}}\"><title>{{{{title}}}}</title>\n{body}"
        )
    }

    #[track_caller]
    fn check(body: &str, expected: &[(usize, &str)]) {
        let found = remarks(&page(body));
        let found: Vec<_> = found.iter().map(|odd| (odd.line, &*odd.message)).collect();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn a_page_without_oddities_has_no_remarks() {
        check(
            "<p>{{heading}}</p>\n{{#message}}<b>{{message}}</b>{{/message}}",
            &[],
        );
        check(
            "<button id=\"anteroom-go\">Go</button>\n{{{anteroomScript}}}",
            &[],
        );
    }

    #[test]
    fn a_page_of_very_many_elements_is_checked_in_part() {
        for body in ["<div>".repeat(200_000), "<p>a</p>\n".repeat(100_000)] {
            let found = remarks(&page(&(body + "{{{anteroomScript}}}")));
            let names = |what: &str| found.iter().any(|odd| odd.message.contains(what));
            assert!(names("2000 elements"), "{found:?}");
            assert!(
                !names("no script runs") && !names("is missing"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_script_that_does_not_run_is_odd() {
        for body in [
            "<!-- {{{anteroomScript}}} -->",
            "<textarea>{{{anteroomScript}}}</textarea>",
        ] {
            let body = format!("<button id=\"anteroom-go\">Go</button>{body}");
            let found = remarks(&page(&body));
            let is_named = |odd: &Mistake| odd.message.contains("where no script runs");
            assert!(found.iter().any(is_named), "{found:?}");
        }
    }

    #[test]
    fn the_template_of_the_docs_has_no_remarks() {
        let docs = include_str!("../../../../../../docs/how-to/custom-page.md");
        let (_, rest) = docs.split_once("```html\n").unwrap();
        let template = rest.split_once("```").unwrap().0;
        assert!(template.contains("{{{anteroomScript}}}"));
        assert_eq!(CustomPage::mistakes(template), []);
        assert_eq!(remarks(template), []);
    }

    #[test]
    fn an_oddity_has_the_line_of_the_template_and_its_states() {
        check(
            "{{#isRejectQueue}}\n\n\n{{/isRejectQueue}}\n<div>\n</p></div>",
            &[(8, "in every state: No <p> tag to close")],
        );
        check(
            "<p>\n{{#isEventPrequeueing}}\n</p></p>{{/isEventPrequeueing}}",
            &[(
                5,
                "in the states draw, early, early-unknown: No <p> tag to close",
            )],
        );
        check(
            "<div>{{#isRejectQueue}}</p>{{/isRejectQueue}}</div>",
            &[(3, "in the states rejecting, closed: No <p> tag to close")],
        );
        check(
            "<div>{{^isRejectQueue}}</p>{{/isRejectQueue}}</div>",
            &[(
                3,
                "in the states full, your-turn-soon, unknown and 22 more: No <p> tag to close",
            )],
        );
    }

    #[test]
    fn elements_of_the_script_are_checked_where_there_is_one() {
        let script = "{{{anteroomScript}}}";
        let missing = "in every state: an element with id \"anteroom-go\" is missing: a visitor \
                       whose turn comes in the background enters by it";
        check(script, &[(3, missing)]);
        let go = "<a id=\"anteroom-go\" href=\"\">Go</a>";
        check(
            &format!("{go}<p id=\"anteroom-nmber\">\n{script}\n<p id=\"anteroom-moved\">"),
            &[
                (
                    3,
                    "in every state: id \"anteroom-nmber\": the script fills no element with this \
                     id",
                ),
                (
                    5,
                    "in every state: id \"anteroom-moved\": this element is behind the script, \
                     which does not find it",
                ),
            ],
        );
        check("<p id=\"anteroom-nmber\">", &[]);
    }
}
