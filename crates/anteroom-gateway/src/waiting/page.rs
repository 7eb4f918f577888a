//! What does the waiting page look like, as bytes?
//!
//! One Mustache template, parsed once; style and script are constants whose digests the policy
//! header names, so nothing else can run in the page. Which words stand in it is decided in
//! `words`, which headers go with it in `response`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use anteroom_core::estimate::PAGE_RELOAD;
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use ramhorns::Template;

use super::words::Words;
use super::{WaitingView, english, place_endpoint};

const STYLE: &str = include_str!("../../templates/waiting.css");
const SCRIPT: &str = include_str!("../../templates/waiting.js");

static TEMPLATE: LazyLock<Template<'static>> = LazyLock::new(|| {
    Template::new(include_str!("../../templates/waiting.html"))
        .expect("the template is a constant that the tests render")
});

/// The `Content-Security-Policy` of the page: its own style and script by digest, questions to its
/// own site, nothing else. Framing is left open: a guarded site may be embedded by its owner.
pub(super) static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut policy = "default-src 'none'; base-uri 'none'; form-action 'none'; \
                      connect-src 'self'; img-src data:"
        .to_owned();
    for (directive, source) in [("style-src", STYLE), ("script-src", SCRIPT)] {
        let digest = digest::digest(&digest::SHA256, source.as_bytes());
        let digest = STANDARD.encode(digest.as_ref());
        write!(policy, "; {directive} 'sha256-{digest}'").expect("writing to a String cannot fail");
    }
    HeaderValue::try_from(policy).expect("base64 and directives are visible ASCII")
});

/// Shortest reload of a page without script. The page must not pull itself away under a reader or
/// a screen reader; whoever is faster has the button.
const RELOAD_SECS_MIN: u64 = 20;
/// Usual reload of a page without script; longer where the server asks for more patience.
const RELOAD_SECS: u64 = PAGE_RELOAD.0 / 1_000;
/// The same after a POST: the reload takes the notice away that nothing was sent.
const RELOAD_SECS_AFTER_POST: u64 = 60;

/// What the template asks for, by name; empty = not there.
type Values<'a> = BTreeMap<&'static str, Cow<'a, str>>;

/// The whole page as HTML in UTF-8; at most 15 KB.
pub(super) fn render(view: &WaitingView<'_>, after_post: bool) -> String {
    let words = Words::of(view);
    TEMPLATE.render(&values(view, &words, after_post))
}

fn values<'a>(view: &WaitingView<'a>, words: &'a Words, after_post: bool) -> Values<'a> {
    let (until_label, until_left, until) = match &words.until {
        Some(until) => (until.label, &*until.left, Some(&until.moment)),
        None => ("", "", None),
    };
    let mut values = Values::from([
        ("style", STYLE.into()),
        ("script", SCRIPT.into()),
        ("room", view.room.into()),
        ("place_url", place_endpoint::url(view.room).into()),
        (
            "ask_after_ms",
            number(view.place.ask_after.map(|span| span.0)),
        ),
        ("now_ms", number(Some(view.now.0))),
        ("grace", english::at_least(view.place_grace).into()),
        ("after_post", if after_post { "1" } else { "" }.into()),
        ("reload_secs", number(reload_secs(view, after_post))),
        ("heading", words.heading.into()),
        ("reason", (&*words.reason).into()),
        (
            "message",
            words.message.as_deref().unwrap_or_default().into(),
        ),
        ("order", words.order.unwrap_or_default().into()),
        ("kept", words.kept.as_deref().unwrap_or_default().into()),
        ("ahead", words.ahead.as_deref().unwrap_or_default().into()),
        (
            "waiting",
            words.waiting.as_deref().unwrap_or_default().into(),
        ),
        ("wait", words.wait.as_deref().unwrap_or_default().into()),
        ("until_label", until_label.into()),
        ("until_left", until_left.into()),
    ]);
    let until_names = ["until_text", "until_iso", "until_at_ms"];
    let since_names = ["since_text", "since_iso", "since_at_ms"];
    let updated_names = ["updated_text", "updated_iso", "updated_at_ms"];
    for (names, moment) in [
        (until_names, until),
        (since_names, words.since.as_ref()),
        (updated_names, words.updated.as_ref()),
    ] {
        let text = moment.map_or("", |m| &m.text);
        let iso = moment.map_or("", |m| &m.iso);
        let at_ms = number(moment.map(|m| m.at_ms));
        values.extend(names.into_iter().zip([text.into(), iso.into(), at_ms]));
    }
    values
}

fn number(n: Option<u64>) -> Cow<'static, str> {
    n.map_or(Cow::Borrowed(""), |n| n.to_string().into())
}

/// Seconds between reloads without script; never where asking again is of no use. At most half the
/// time for which the place is kept, or reloading would lose it.
fn reload_secs(view: &WaitingView<'_>, after_post: bool) -> Option<u64> {
    let usual = if after_post {
        RELOAD_SECS_AFTER_POST
    } else {
        RELOAD_SECS
    };
    let most = (view.place_grace.0 / 2_000).max(RELOAD_SECS_MIN);
    let asked = view.place.ask_after?.secs_ceil();
    Some(asked.max(usual).min(most))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use anteroom_core::decision::QueueReason;
    use anteroom_core::rules::QueueingMethod;
    use anteroom_core::time::{Millis, Span};

    use super::super::samples;
    use super::*;

    fn pages() -> Vec<(WaitingView<'static>, String)> {
        let mut pages = Vec::new();
        for reason in samples::REASONS {
            for method in [QueueingMethod::Fifo, QueueingMethod::Random] {
                for after_post in [false, true] {
                    let mut view = samples::view(reason);
                    view.method = method;
                    pages.push((view, render(&view, after_post)));
                }
            }
        }
        pages
    }

    /// What stands between two marks, without either.
    fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
        let (_, rest) = text.split_once(start).unwrap();
        rest.split_once(end).unwrap().0
    }

    #[test]
    fn every_reason_is_on_its_page_and_nothing_of_the_template_is() {
        for (view, page) in pages() {
            let words = Words::of(&view);
            assert!(page.contains(&*words.reason), "{:?}", view.place.reason);
            assert!(page.contains(&format!("<h1 id=\"heading\">{}</h1>", words.heading)));
            let own = page.replace(STYLE, "").replace(SCRIPT, "");
            assert!(!own.contains("{{") && !own.contains("}}"), "{own}");
            assert_eq!(own.matches("<h1").count(), 1);
        }
    }

    #[test]
    fn the_template_and_its_values_know_the_same_names() {
        let view = samples::view(QueueReason::Full);
        let words = Words::of(&view);
        let known: BTreeSet<&str> = values(&view, &words, false).into_keys().collect();
        let source = TEMPLATE.source().split_once("}}").unwrap().1;
        let asked: BTreeSet<&str> = source
            .split("{{")
            .skip(1)
            .map(|rest| rest.split_once("}}").unwrap().0)
            .map(|tag| tag.trim_matches(|c| "{#^/".contains(c)))
            .collect();
        assert_eq!(asked, known);
    }

    #[test]
    fn a_page_is_small_and_asks_no_other_host() {
        for (view, page) in pages() {
            assert!(
                page.len() <= 15_000,
                "{:?}: {} bytes",
                view.place.reason,
                page.len()
            );
            assert!(!page.contains("http:") && !page.contains("https:"));
            assert!(!page.contains("src=") && !page.contains("@import"));
            assert!(!page.contains("url("));
        }
    }

    #[test]
    fn the_policy_names_exactly_what_stands_in_the_page() {
        let page = render(&samples::view(QueueReason::Full), false);
        let policy = POLICY.to_str().unwrap();
        for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
            let source = between(&page, &format!("<{tag}>"), &format!("</{tag}>"));
            let digest = digest::digest(&digest::SHA256, source.as_bytes());
            let expected = format!("{directive} 'sha256-{}'", STANDARD.encode(digest.as_ref()));
            assert!(policy.contains(&expected), "{policy} lacks {expected}");
        }
        assert!(!policy.contains("unsafe"));
        let own = page.replace(SCRIPT, "");
        let has_handler = own.split(" on").skip(1).any(|rest| {
            let name_ends = rest.find(|c: char| !c.is_ascii_lowercase());
            name_ends.is_some_and(|end| rest[end..].starts_with('='))
        });
        assert!(
            !has_handler && !own.contains(" style="),
            "the policy would block it"
        );
    }

    #[test]
    fn only_after_a_post_the_page_says_that_nothing_was_passed_on() {
        let view = samples::view(QueueReason::Full);
        let notice = "What you sent was not passed on.";
        assert!(render(&view, true).contains(notice));
        assert!(!render(&view, false).contains(notice));
        assert!(!render(&view, false).contains(" data-post"));
    }

    #[test]
    fn whatever_stands_in_a_name_is_text_and_not_markup() {
        let mut view = samples::view(QueueReason::Full);
        view.room = "\"><script>alert(1)</script>&'{{words}}";
        let page = render(&view, false);
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;"));
        assert!(page.contains("?room=%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E%26%27"));
        assert!(!view.room.is_empty() && page.matches("</script>").count() == 1);
    }

    #[test]
    fn what_an_operator_says_is_text_and_stands_there_only_if_it_was_said() {
        let mut view = samples::view(QueueReason::QueueAll);
        let own = render(&view, false).replace(SCRIPT, "");
        assert!(own.contains("<p id=\"message\" class=\"notice\" dir=\"auto\" hidden></p>"));
        view.is_paused = true;
        view.message = Some("<img src=x onerror=alert(1)> & \"more\" at 10:40");
        let own = render(&view, false).replace(SCRIPT, "");
        assert!(!own.contains("<img"));
        let said =
            "dir=\"auto\">&lt;img src=x onerror=alert(1)&gt; &amp; &quot;more&quot; at 10:40</p>";
        assert!(own.contains(said), "{own}");
        assert!(own.contains("paused the entry"));
        let longest = "\u{1f3ab}".repeat(anteroom_wire::orders::MESSAGE_CHARS_MAX);
        view.message = Some(&longest);
        assert!(render(&view, true).len() <= 15_000);
    }

    #[test]
    fn without_script_the_page_reloads_slowly_and_never_in_vain() {
        let mut view = samples::view(QueueReason::Full);
        assert_eq!(reload_secs(&view, false), Some(30));
        assert_eq!(reload_secs(&view, true), Some(60));
        view.place.ask_after = Some(Span(44_001));
        assert_eq!(reload_secs(&view, false), Some(45));
        view.place_grace = Span::from_secs(50);
        assert_eq!(reload_secs(&view, false), Some(25));
        view.place_grace = Span::from_secs(10);
        assert_eq!(reload_secs(&view, true), Some(20));
        let page = render(&view, false);
        let head = between(&page, "<head>", "</head>");
        let refresh = "<noscript><meta http-equiv=\"refresh\" content=\"20\"></noscript>";
        assert!(head.contains(refresh));
        assert_eq!(page.matches("http-equiv").count(), 1);
        let rejected = render(&samples::view(QueueReason::Rejecting), false);
        assert!(!rejected.contains("http-equiv"));
        assert!(rejected.contains("data-ask=\"\""));
    }

    #[test]
    fn a_line_without_a_value_is_hidden() {
        let page = render(&samples::view(QueueReason::Rejecting), false);
        let own = page.replace(SCRIPT, "");
        assert_eq!(own.matches("<div hidden>").count(), 5, "{own}");
        let page = render(&samples::view(QueueReason::Full), false);
        assert!(
            page.contains("<div><dt>People ahead of you</dt><dd id=\"ahead\" class=\"big\">412<")
        );
        assert!(page.contains("10 to 20 minutes"));
    }

    #[test]
    fn extreme_values_still_make_a_page() {
        let mut view = samples::view(QueueReason::NotOpenYet {
            opens_at: Millis::NEVER,
        });
        view.now = Millis::NEVER;
        view.place.arrived_at = Millis::NEVER;
        view.place.ask_after = Some(Span(u64::MAX));
        view.place_grace = Span(u64::MAX);
        view.place.people_ahead = Some(u32::MAX);
        assert!(render(&view, true).ends_with("</html>"));
    }

    #[test]
    fn the_script_touches_only_what_is_there() {
        let page = render(&samples::view(QueueReason::Full), false).replace(SCRIPT, "");
        for call in ["el('", "put('", "line('", "local('"] {
            for rest in SCRIPT.split(call).skip(1) {
                let id = rest.split_once('\'').unwrap().0;
                assert!(
                    page.contains(&format!("id=\"{id}\"")),
                    "nothing is called {id}"
                );
            }
        }
        let words = Words::of(&samples::view(QueueReason::Full));
        let words = serde_json::to_value(words).unwrap();
        for use_of_words in [" w.", "(w.", "!w."] {
            for rest in SCRIPT.split(use_of_words).skip(1) {
                let is_in_key = |c: &char| c.is_ascii_alphabetic();
                let key: String = rest.chars().take_while(is_in_key).collect();
                assert!(words.get(&key).is_some(), "the endpoint sends no {key}");
            }
        }
    }
}
