//! Size, completeness and escaping of the page, and its script and policy.

use std::collections::BTreeSet;

use anteroom_room::queue_position::QueueReason;
use anteroom_room::rules::QueueingMethod;
use anteroom_room::time::{DurationMs, Timestamp};

use super::*;
use crate::page::samples::{self, LINKS};

/// Most characters of an operator's message.
const MESSAGE_CHARS_MAX: usize = 500;

/// Longest name of a room.
const ROOM: &str = "a-room-with-a-name-that-is-as-long-as-the-name-of-a-room-can-be-";

/// Longest addresses that the gateway makes.
const LONG: Links<'static> = Links {
    position: "/.well-known/anteroom/position?\
               room=a-room-with-a-name-that-is-as-long-as-the-name-of-a-room-can-be-&lang=zh-Hant",
    language: LINKS.language,
    back: "/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
           0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
           0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
           0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
};

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
        assert!(
            page.contains(&escaped(&words.reason)),
            "{:?}",
            view.position.reason
        );
        assert!(page.contains(&format!("<h1 id=\"heading\">{}</h1>", words.heading)));
        let own = page.replace(&*STYLE, "").replace(&*SCRIPT, "");
        for mark in ["{{", "}}", "[[", "]]", "{time}", "{n}"] {
            assert!(!own.contains(mark), "{mark} in {own}");
        }
        assert_eq!(own.matches("<h1").count(), 1);
        let tag = view.language.tag();
        assert!(own.contains(&format!("<html lang=\"{tag}\" dir=")), "{tag}");
        let chosen = format!("<option value={tag} lang={tag} selected>");
        assert!(own.contains(&chosen), "{chosen}");
        assert_eq!(own.matches(" selected>").count(), 1);
        assert_eq!(own.matches("<option ").count(), Language::ALL.len());
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
    for (character, most) in [("e", 15_000), ("\u{1f3ab}", 16_500), ("\"", 17_500)] {
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
            assert!(!page.contains("http:") && !page.contains("https:"));
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
    assert_eq!(between(&page, "<script>", "</script>"), &*SCRIPT);
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
    let hidden = "<p class=\"notice\" hidden><strong>Message from the organiser:</strong> \
                  <span id=\"message\" dir=\"auto\"></span></p>";
    assert!(page(&view, false).contains(hidden));
    view.is_paused = true;
    view.message = Some("Back at 10:40");
    let page = page(&view, false);
    assert!(page.contains("<p class=\"notice\"><strong>Message from"));
    assert!(page.contains("<span id=\"message\" dir=\"auto\">Back at 10:40</span>"));
    assert!(page.contains("paused entry"));
}

#[test]
fn only_after_a_post_the_page_has_a_notice() {
    let view = samples::view(QueueReason::Full);
    let notice = "Your form was not sent.";
    assert!(page(&view, true).contains(notice));
    assert!(!page(&view, false).contains(notice));
    assert!(!page(&view, false).contains(" data-post"));
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
        4,
        "message, room twice, back"
    );
    assert_eq!(page.matches("</script>").count(), 1);
}

#[test]
fn a_page_without_script_reloads_slowly_and_only_if_useful() {
    let mut view = samples::view(QueueReason::Full);
    assert_eq!(reload_secs(&view, false), Some(30));
    assert_eq!(reload_secs(&view, true), Some(60));
    view.position.refresh_after = Some(DurationMs(44_001));
    assert_eq!(reload_secs(&view, false), Some(45));
    view.position_grace = DurationMs::from_secs(50);
    assert_eq!(reload_secs(&view, false), Some(25));
    view.position_grace = DurationMs::from_secs(10);
    assert_eq!(reload_secs(&view, true), Some(20));
    let html = page(&view, false);
    let head = between(&html, "<head>", "</head>");
    let refresh = "<noscript><meta http-equiv=\"refresh\" content=\"20\"></noscript>";
    assert!(head.contains(refresh));
    assert_eq!(html.matches("http-equiv").count(), 1);
    let rejected = page(&samples::view(QueueReason::Rejecting), false);
    assert!(!rejected.contains("http-equiv"));
    assert!(rejected.contains("data-ask=\"\""));
}

#[test]
fn a_line_without_a_value_is_hidden() {
    let rejected = page(&samples::view(QueueReason::Rejecting), false);
    let own = rejected.replace(&*SCRIPT, "");
    assert_eq!(own.matches("<div hidden>").count(), 7, "{own}");
    assert!(own.contains("<p class=\"notice\" hidden>"));
    let full = page(&samples::view(QueueReason::Full), false);
    assert!(full.contains("<div><dt>People ahead of you<dd id=\"ahead\" class=\"big\">412<"));
    assert!(full.contains("<div><dt>Let in during the last minute<dd id=\"moved\">38<"));
    assert!(full.contains("10–20 minutes"));
}

#[test]
fn french_has_a_space_before_a_colon() {
    let mut view = samples::view(QueueReason::Full);
    let label = "<footer><p>Last updated: <time";
    assert!(page(&view, false).contains(label));
    view.language = Language::French;
    let label = "<footer><p>Dernière mise à jour\u{a0}: <time";
    assert!(page(&view, false).contains(label));
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
fn the_script_uses_only_ids_texts_and_words_that_exist() {
    let page = page(&samples::view(QueueReason::Full), false).replace(&*SCRIPT, "");
    for call in ["el('", "put('", "line('", "local('", "label('"] {
        for rest in SCRIPT.split(call).skip(1) {
            let id = rest.split_once('\'').unwrap().0;
            assert!(
                page.contains(&format!("id=\"{id}\"")),
                "there is no id {id}"
            );
        }
    }
    for rest in SCRIPT.split("text('").skip(1) {
        let name = rest.split_once('\'').unwrap().0;
        assert!(
            page.contains(&format!(" data-{name}=\"")),
            "there is no text {name}"
        );
    }
    let words = Words::of(&samples::view(QueueReason::Full));
    let words = serde_json::to_value(words).unwrap();
    for use_of_words in [" w.", "(w.", "!w.", "[w."] {
        for rest in SCRIPT.split(use_of_words).skip(1) {
            let is_in_key = |c: &char| c.is_ascii_alphabetic();
            let key: String = rest.chars().take_while(is_in_key).collect();
            assert!(words.get(&key).is_some(), "the endpoint has no {key}");
        }
    }
}
