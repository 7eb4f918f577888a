//! What does our own waiting page look like, as bytes?
//!
//! One Mustache template, filled with the words of each language once and with a visitor's each time.
//! Style and script are constants, so that a policy header can name their digests and nothing else
//! runs in the page. Which words stand in it is decided in `words`.

mod pack;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use anteroom_config::language::Language;
use anteroom_core::estimate::PAGE_RELOAD;
use anteroom_core::time::Span;
use ramhorns::Template;

use crate::texts::Texts;
use crate::time_words::{self, Case};
use crate::view::WaitingView;
use crate::words::Words;

/// The style, exactly as it stands in the page.
pub static STYLE: LazyLock<String> =
    LazyLock::new(|| pack::style(include_str!("../templates/waiting.css")));

/// The script, exactly as it stands in the page.
pub static SCRIPT: LazyLock<String> =
    LazyLock::new(|| pack::script(include_str!("../templates/waiting.js")));

static TEMPLATES: LazyLock<BTreeMap<Language, Template<'static>>> = LazyLock::new(|| {
    let templates = Language::ALL.map(|language| {
        let template = Template::new(in_language(language))
            .expect("the template is a constant that the tests render in every language");
        (language, template)
    });
    templates.into()
});

/// Makes what all pages share. Otherwise the first visitor of a rush would wait for it.
pub fn prepare() {
    LazyLock::force(&TEMPLATES);
}

/// Where a page asks, and where its form goes; our own paths, with their queries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Links<'a> {
    /// Answers where the visitor stands; ends with `/place?` and a query. The same with `/events?` says
    /// when to ask.
    pub place: &'a str,
    /// Remembers a language.
    pub language: &'a str,
    /// The page that was asked for: path and query, for the way back from there; on this site and
    /// without quotes, as whoever asks chooses it. Empty if it would make the page too large.
    pub back: &'a str,
}

/// Shortest reload of a page without script. The page must not pull itself away under a reader or
/// a screen reader; whoever is faster has the button.
const RELOAD_SECS_MIN: u64 = 20;
/// Usual reload of a page without script; longer where the server asks for more patience.
const RELOAD_SECS: u64 = PAGE_RELOAD.0 / 1_000;
/// The same after a POST: the reload takes the notice away that nothing was sent.
const RELOAD_SECS_AFTER_POST: u64 = 60;

/// What the template asks for, by name; empty = not there.
type Values<'a> = BTreeMap<&'static str, Cow<'a, str>>;

/// The whole page as HTML in UTF-8; at most 15,000 bytes, unless a message of many is long in bytes.
#[must_use]
pub fn html(view: &WaitingView<'_>, links: Links<'_>, after_post: bool) -> String {
    let words = Words::of(view);
    TEMPLATES[&view.language].render(&values(view, links, &words, after_post))
}

/// Our template with everything that a language says on all its pages.
fn in_language(language: Language) -> String {
    let texts = Texts::of(language);
    let direction = if texts.grammar.is_rtl { "rtl" } else { "ltr" };
    let mut source = pack::html(include_str!("../templates/waiting.html"))
        .replace("[[style]]", &STYLE)
        .replace("[[script]]", &SCRIPT)
        .replace("[[options]]", &options(language))
        .replace("[[tag]]", language.tag())
        .replace("[[direction]]", direction);
    for (name, text) in texts.all() {
        source = source.replace(&format!("[[{name}]]"), &escaped(text));
    }
    source
}

/// The languages to choose from, each called as it calls itself. An option ends where the next one begins.
fn options(chosen: Language) -> String {
    let options = Language::ALL.map(|language| {
        let tag = language.tag();
        let selected = if language == chosen { " selected" } else { "" };
        let name = Texts::of(language).name;
        format!("<option value={tag} lang={tag}{selected}>{name}")
    });
    options.concat()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn values<'a>(
    view: &WaitingView<'a>,
    links: Links<'a>,
    words: &'a Words,
    after_post: bool,
) -> Values<'a> {
    let texts = Texts::of(view.language);
    let (until_label, until_left, until) = match &words.until {
        Some(until) => (until.label, &*until.left, Some(&until.moment)),
        None => ("", "", None),
    };
    let grace = time_words::at_least(texts, view.place_grace, Case::Alone);
    let reload_secs = reload_secs(view, after_post);
    let reloads = reload_secs.map(|seconds| {
        let time = texts.grammar.units(seconds, texts.grammar.seconds.alone);
        texts.reloads.replace("{time}", &time)
    });
    let mut values = Values::from([
        ("room", view.room.into()),
        ("place_url", links.place.into()),
        ("language_url", links.language.into()),
        ("back", links.back.into()),
        ("ask_after_ms", number(view.place.ask_after.map(|s| s.0))),
        ("now_ms", number(Some(view.now.0))),
        ("safe", texts.safe.replace("{time}", &grace).into()),
        ("after_post", if after_post { "1" } else { "" }.into()),
        ("reload_secs", number(reload_secs)),
        ("reloads", reloads.unwrap_or_default().into()),
        ("heading", words.heading.into()),
        ("reason", (&*words.reason).into()),
        ("order", words.order.unwrap_or_default().into()),
        ("until_label", until_label.into()),
        ("until_left", until_left.into()),
        ("message", text(words.message.as_deref())),
        ("kept", text(words.kept.as_deref())),
        ("ahead", text(words.ahead.as_deref())),
        ("waiting", text(words.waiting.as_deref())),
        ("moved", text(words.moved.as_deref())),
        ("wait", text(words.wait.as_deref())),
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

fn text(text: Option<&str>) -> Cow<'_, str> {
    text.unwrap_or_default().into()
}

fn number(n: Option<u64>) -> Cow<'static, str> {
    n.map_or(Cow::Borrowed(""), |n| n.to_string().into())
}

/// Seconds after which a page has to be loaded again where no script of it asks; `None` where that is of
/// no use. At most half the time for which the place is kept, or reloading would lose it.
#[must_use]
pub fn reload_secs(view: &WaitingView<'_>, after_post: bool) -> Option<u64> {
    let usual = if after_post {
        RELOAD_SECS_AFTER_POST
    } else {
        RELOAD_SECS
    };
    let most = (view.place_grace.0 / 2_000).max(RELOAD_SECS_MIN);
    let asked = view.place.ask_after.map(Span::secs_ceil)?;
    Some(asked.max(usual).min(most))
}

#[cfg(test)]
mod tests;
