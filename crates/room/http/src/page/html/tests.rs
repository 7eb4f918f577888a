//! Size, completeness and escaping of the page, and its script and policy.

use std::collections::BTreeSet;

use anteroom_config::PageConfig;
use anteroom_room::queue_position::QueueReason;
use anteroom_room::rules::QueueingMethod;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::visitor_code::VisitorCode;

use super::*;
use crate::page::samples::{self, LINKS};
use crate::waiting::position_endpoint;

/// Most characters of an operator's message.
const MESSAGE_CHARS_MAX: usize = 500;

/// Longest name of a room.
const ROOM: &str = "a-room-with-a-name-that-is-as-long-as-the-name-of-a-room-can-be-";

/// Longest addresses that the gateway makes.
const LONG: Links<'static> = Links {
    paths: LINKS.paths,
    query: "room=a-room-with-a-name-that-is-as-long-as-the-name-of-a-room-can-be-&lang=zh-Hant\
            &back=%2F0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    entry: "",
    back: "/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
           0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
           0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
           0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
};

fn html(view: &WaitingView<'_>, links: Links<'_>, after_post: bool) -> String {
    super::page(view, links, after_post).into_text()
}

fn page(view: &WaitingView<'_>, after_post: bool) -> String {
    html(view, LINKS, after_post)
}

/// Returns every state in every language, before and after a form, with all lines of the page.
fn views() -> Vec<(WaitingView<'static>, bool)> {
    let mut views = Vec::new();
    for language in Language::ALL {
        for reason in samples::REASONS {
            for method in [QueueingMethod::Fifo, QueueingMethod::Random] {
                for after_post in [false, true] {
                    let mut view = samples::view(reason);
                    view.method = method;
                    view.language = language;
                    view.is_paused = after_post;
                    view.message = Some("The payment service is being mended. Next news by 10:40.");
                    view.position.people_ahead = Some(u32::MAX);
                    view.position.people_waiting = u32::MAX;
                    view.draw = true;
                    view.room = ROOM;
                    views.push((view, after_post));
                }
            }
        }
    }
    views
}

/// Returns the text between two others.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap();
    rest.split_once(end).unwrap().0
}

#[test]
fn every_reason_is_on_its_page_in_every_language() {
    for (view, after_post) in views() {
        let page = html(&view, LONG, after_post);
        let words = Words::of(&view);
        if let Some(why) = &words.why {
            assert!(page.contains(&marked(why)), "{:?}", view.position.reason);
        }
        assert!(page.contains(&format!("<h1 id=\"heading\">{}</h1>", words.heading)));
        let own = page.replace(&*STYLE, "").replace(&*SCRIPT, "");
        let shown = own.split_once("<header>").unwrap().1;
        for mark in [
            "{{", "}}", "[[", "]]", "{time}", "{n}", "{at}", "{noun}", "{1",
        ] {
            assert!(!shown.contains(mark), "{mark} in {shown}");
        }
        assert_eq!(own.matches("<h1").count(), 1);
        let tag = view.language.tag();
        assert!(own.contains(&format!("<html lang=\"{tag}\" dir=")), "{tag}");
        let link = "<a id=\"lang\" href=\"/.well-known/anteroom/language?";
        assert!(own.contains(link), "{tag}");
    }
}

#[test]
fn every_name_of_the_template_has_a_value() {
    let view = samples::view(QueueReason::Full);
    let values = Values {
        view: &view,
        links: LINKS,
        words: Words::of(&view),
        after_post: false,
    };
    let source = include_str!("../../../templates/waiting.html");
    let source = source.split_once("}}<!doctype").unwrap().1;
    let named: BTreeSet<&str> = source
        .split("{{")
        .skip(1)
        .map(|rest| rest.split_once("}}").unwrap().0)
        .map(|tag| tag.trim_matches(|c| "{#^/".contains(c)))
        .collect();
    for name in named {
        assert!(values.field(name).is_some(), "{name}");
    }
    assert!(
        !STYLE.contains("{{") && !SCRIPT.contains("{{"),
        "it would be taken for a tag"
    );
}

#[test]
fn a_page_is_small_and_loads_nothing_from_other_hosts() {
    // The longest message: of plain characters, of the longest ones, and of those that escape to
    // the most bytes.
    for (character, most) in [("e", 22_000), ("\u{1f3ab}", 23_500), ("\"", 24_500)] {
        let message = character.repeat(MESSAGE_CHARS_MAX);
        let mut largest = (0, String::new());
        for (view, after_post) in views() {
            let view = WaitingView {
                message: Some(&message),
                ..view
            };
            let page = html(&view, LONG, after_post);
            let what = format!("{:?} {:?}", view.language, view.position.reason);
            largest = largest.max((page.len(), what));
            // The name of a format, in the script.
            let own = page.replace("http:/'+'/www.w3.org/2000/svg", "");
            assert!(!own.contains("http:") && !own.contains("https:"));
            assert!(!page.contains("src=") && !page.contains("@import"));
            assert!(!page.contains("url("));
        }
        println!("the largest with {character}: {largest:?}");
        assert!(largest.0 <= most, "{character}: {largest:?}");
    }
}

#[test]
fn scripts_and_styles_in_the_page_match_its_policy() {
    let page = page(&samples::view(QueueReason::Full), false);
    assert_eq!(between(&page, "<style>", "</style>"), &*STYLE);
    let (_, script) = page
        .split_once("<script lang=\"en\" data-position=")
        .unwrap();
    assert_eq!(between(script, ">", "</script>"), &*SCRIPT);
    let own = page.replace(&*SCRIPT, "");
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
fn the_operators_message_is_on_the_page_only_if_there_is_one() {
    let mut view = samples::view(QueueReason::QueueAll);
    let hidden = "<div class=\"box hold line\" hidden><p><b>Message from the organiser</b> \
                  <span id=\"at\" class=\"soft line\"></span>\
                  <p id=\"message\" dir=\"auto\"></div>";
    let shown = hidden.replace(" hidden>", ">");
    assert!(page(&view, false).contains(hidden));
    view.is_paused = true;
    view.message = Some("Back at 10:40");
    view.message_at = Some(view.now - DurationMs::from_secs(600));
    let page = page(&view, false);
    let time = "<time datetime=\"2026-08-01T09:31:48Z\" data-form=\"\">09:31 UTC</time></span>";
    let shown = shown.replace("</span>", time);
    assert!(
        page.contains(&shown.replace("</div>", "Back at 10:40</div>")),
        "{page}"
    );
    assert!(page.contains("Entry is paused"));
}

#[test]
fn only_after_a_post_the_page_has_a_notice_and_leads_to_the_entry() {
    let view = samples::view(QueueReason::Full);
    let notice = "Your form was not sent";
    assert!(!page(&view, false).contains(notice));
    assert!(!page(&view, false).contains(" data-post"));
    let links = Links {
        entry: "/cart",
        ..LINKS
    };
    let page = html(&view, links, true);
    assert!(page.contains(notice));
    assert!(page.contains("so the site did not get it"));
    assert!(page.contains("content=\"60;url=/cart\""));
    assert!(page.contains("id=\"go\" class=\"btn\" href=\"/cart\""));
}

#[test]
fn names_messages_and_addresses_are_text_and_not_markup() {
    let mut view = samples::view(QueueReason::Full);
    let evil = "\"><script>alert(1)</script>&'{{words}}[[what]]";
    view.room = evil;
    view.message = Some(evil);
    let links = Links {
        back: evil,
        ..LINKS
    };
    let page = html(&view, links, false);
    assert!(!page.contains("<script>alert"));
    let as_text = "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;'{{words}}[[what]]";
    assert_eq!(
        page.matches(as_text).count(),
        3,
        "message, and twice the name of the site"
    );
    assert_eq!(page.matches("</script>").count(), 1);
}

#[test]
fn a_page_without_script_reloads_slowly() {
    let mut view = samples::view(QueueReason::Full);
    assert_eq!(reload_secs(&view, false), 30);
    assert_eq!(reload_secs(&view, true), 60);
    view.position.refresh_after = Some(DurationMs(44_001));
    assert_eq!(reload_secs(&view, false), 45);
    view.position_grace = DurationMs::from_secs(50);
    assert_eq!(reload_secs(&view, false), 25);
    view.position_grace = DurationMs::from_secs(10);
    assert_eq!(reload_secs(&view, true), 20);
    let html = page(&view, false);
    let head = between(&html, "<head>", "</head>");
    let refresh = "<noscript><meta http-equiv=\"refresh\" content=\"20\"></noscript>";
    assert!(head.contains(refresh));
    assert_eq!(html.matches("http-equiv").count(), 1);
}

#[test]
fn a_room_without_a_queue_checks_every_30_seconds_as_it_says() {
    let view = samples::view(QueueReason::Rejecting);
    assert_eq!(view.position.refresh_after, None);
    let page = page(&view, false);
    assert!(page.contains("This page checks every 30 seconds."));
    assert!(page.contains("content=\"30\""));
    assert!(page.contains("data-ask=\"30000\""));
    assert!(!page.contains("id=\"leave\"") && !page.contains("is saved"));
}

#[test]
fn a_line_without_a_value_is_hidden() {
    let rejected = page(&samples::view(QueueReason::Rejecting), false);
    let own = rejected.replace(&*SCRIPT, "");
    for line in [
        "<dl class=\"line\" hidden>",
        "id=\"moved\" class=\"soft\" hidden>",
    ] {
        assert!(own.contains(line), "{line} in {own}");
    }
    let full = page(&samples::view(QueueReason::Full), false);
    assert!(full.contains("<dd id=\"number\" class=\"big\">413<"));
    assert!(full.contains("38 people went in during the last minute."));
    assert!(full.contains("10–20 minutes"));
    let entry = "<time datetime=\"2026-08-01T09:51:00Z\" data-form=\"-\">09:51</time>–\
                 <time datetime=\"2026-08-01T10:02:00Z\" data-form=\"\">10:02 UTC</time>";
    assert!(full.contains(entry), "{full}");
}

#[test]
fn the_look_of_a_room_is_in_its_page() {
    let settings = PageConfig {
        title: Some("Festival <27>".to_owned()),
        noun: Some("shop".to_owned()),
        facts: vec!["Six <b> tickets".to_owned(), "Names".to_owned()],
        help: Some("/help".to_owned()),
        ..PageConfig::default()
    };
    let mut view = samples::view(QueueReason::OriginDown);
    view.page = Some(&settings);
    view.reference = Some(VisitorCode([0x3f, 0x9a, 0x12, 0xc4]));
    let english = page(&view, false);
    assert!(english.contains("<title>413 in line · Festival &lt;27&gt;</title>"));
    assert!(english.contains("The shop isn’t answering"));
    assert!(english.contains("<p>Six &lt;b&gt; tickets</p><p>Names</p>"));
    assert!(english.contains("<a href=\"/help\">Help</a>"));
    assert!(english.contains("<code dir=\"ltr\">3F9A-12C4</code>"));
    view.language = Language::German;
    assert!(
        !page(&view, false).contains("shop is"),
        "a word of another language"
    );
}

#[test]
fn extreme_values_still_make_a_page() {
    let mut view = samples::view(QueueReason::NotOpenYet {
        opens_at: Timestamp::NEVER,
    });
    view.now = Timestamp::NEVER;
    view.position.arrived_at = Timestamp::NEVER;
    view.position.refresh_after = Some(DurationMs(u64::MAX));
    view.position_grace = DurationMs(u64::MAX);
    view.position.people_ahead = Some(u32::MAX);
    assert!(page(&view, true).trim_end().ends_with("</html>"));
}

#[test]
fn the_script_uses_only_ids_and_texts_that_exist() {
    let settings = PageConfig {
        facts: vec!["One".to_owned(), "Two".to_owned()],
        ..PageConfig::default()
    };
    let mut view = samples::view(QueueReason::Full);
    view.page = Some(&settings);
    let page = page(&view, false).replace(&*SCRIPT, "");
    let source = include_str!("../../../templates/waiting.js");
    for call in ["el('", "put('", "say('", "on('"] {
        for rest in source.split(call).skip(1) {
            let id = rest.split_once('\'').unwrap().0;
            let is_id = !id.is_empty() && id.chars().all(char::is_alphanumeric);
            let is_there = page.contains(&format!("id=\"{id}\""));
            assert!(!is_id || is_there, "there is no id {id}");
        }
    }
    let first = position_endpoint::still_waiting_page(&view, false, "");
    let first: serde_json::Value = serde_json::from_slice(first.body()).unwrap();
    let calls = source.split(" text('").skip(1);
    for rest in calls.chain(source.split("(text('").skip(1)) {
        let name = rest.split_once('\'').unwrap().0;
        assert!(first["t"].get(name).is_some(), "no text {name}");
    }
}
