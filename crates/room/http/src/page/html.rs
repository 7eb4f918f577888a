//! What does our own waiting page look like, as bytes?
//!
//! One Mustache template, filled with the words of each language once and with a visitor's each
//! time. Style and script are constants, so that a policy header can name their digests and nothing
//! else runs in the page. Which words stand in it is decided in `words`.

mod pack;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use anteroom_config::language::Language;
use anteroom_room::estimate::PAGE_RELOAD;
use anteroom_room::time::DurationMs;
use ramhorns::encoding::Encoder;
use ramhorns::{Content, Template};

use crate::page::fields::{ByName, Fields, write_text};
use crate::page::grammar::filled;
use crate::page::texts::Texts;
use crate::page::time_words::{self, Case};
use crate::page::view::WaitingView;
use crate::page::words::Words;

/// The style, exactly as it stands in the page.
pub(crate) static STYLE: LazyLock<String> =
    LazyLock::new(|| pack::style(include_str!("../../templates/waiting.css")));

/// The script, exactly as it stands in the page.
pub(crate) static SCRIPT: LazyLock<String> =
    LazyLock::new(|| pack::script(include_str!("../../templates/waiting.js")));

static TEMPLATES: LazyLock<BTreeMap<Language, Template<'static>>> = LazyLock::new(|| {
    let templates = Language::ALL.map(|language| {
        let template = Template::new(in_language(language))
            .expect("the template is a constant that the tests render in every language");
        (language, template)
    });
    templates.into()
});

/// Makes what all pages share. Otherwise the first visitor of a rush would wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&TEMPLATES);
}

/// Where a page asks, and where its form goes; our own paths, with their queries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Links<'a> {
    /// Answers where the visitor stands; ends with `/place?` and a query. The same with `/events?`
    /// says when to ask.
    pub(crate) place: &'a str,
    /// Remembers a language.
    pub(crate) language: &'a str,
    /// The page that was asked for: path and query, for the way back from there; on this site and
    /// without quotes, as whoever asks chooses it. Empty if it would make the page too large.
    pub(crate) back: &'a str,
}

/// Shortest reload of a page without script. The page must not pull itself away under a reader or
/// a screen reader; whoever is faster has the button.
const RELOAD_SECS_MIN: u64 = 20;
/// Usual reload of a page without script; longer where the server asks for more patience.
const RELOAD_SECS: u64 = PAGE_RELOAD.0 / 1_000;
/// The same after a POST: the reload takes the notice away that nothing was sent.
const RELOAD_SECS_AFTER_POST: u64 = 60;

/// What the template asks for, by name; empty = not there.
struct Values<'a> {
    view: &'a WaitingView<'a>,
    links: Links<'a>,
    words: Words,
    after_post: bool,
}

/// The whole page as HTML in UTF-8; at most 15,000 bytes, unless a message of many is long in
/// bytes.
#[must_use]
pub(crate) fn html(view: &WaitingView<'_>, links: Links<'_>, after_post: bool) -> String {
    let values = Values {
        view,
        links,
        words: Words::of(view),
        after_post,
    };
    TEMPLATES[&view.language].render(&ByName(values))
}

/// Our template with everything that a language says on all its pages.
fn in_language(language: Language) -> String {
    let texts = Texts::of(language);
    let direction = if language.is_rtl() { "rtl" } else { "ltr" };
    let mut source = pack::html(include_str!("../../templates/waiting.html"))
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

/// The languages to choose from, each called as it calls itself. An option ends where the next one
/// begins.
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

impl Values<'_> {
    fn safe(&self) -> String {
        let texts = Texts::of(self.view.language);
        let grace = time_words::at_least(texts, self.view.position_grace, Case::Alone);
        filled(texts.safe, "{time}", &grace)
    }

    fn reload_secs(&self) -> Option<u64> {
        reload_secs(self.view, self.after_post)
    }

    fn reloads(&self) -> String {
        let texts = Texts::of(self.view.language);
        let time = |seconds| texts.grammar.units(seconds, texts.grammar.seconds.alone);
        let reloads = |seconds| filled(texts.reloads, "{time}", &time(seconds));
        self.reload_secs().map(reloads).unwrap_or_default()
    }
}

/// A value, which is put into the page as text.
struct Text<'a>(Cow<'a, str>);

impl Content for Text<'_> {
    fn is_truthy(&self) -> bool {
        !self.0.is_empty()
    }

    fn render_escaped<E: Encoder>(&self, encoder: &mut E) -> Result<(), E::Error> {
        write_text(&self.0, encoder)
    }
}

impl Fields for Values<'_> {
    type Value<'v>
        = Text<'v>
    where
        Self: 'v;

    fn field(&self, name: &str) -> Option<Text<'_>> {
        let (view, words) = (self.view, &self.words);
        let until = words.until.as_ref();
        let until_moment = until.map(|until| &until.moment);
        let (since, updated) = (words.since.as_ref(), words.updated.as_ref());
        Some(Text(match name {
            "room" => view.room.into(),
            "place_url" => self.links.place.into(),
            "language_url" => self.links.language.into(),
            "back" => self.links.back.into(),
            "ask_after_ms" => number(view.place.ask_after.map(|s| s.0)),
            "now_ms" => number(Some(view.now.0)),
            "safe" => self.safe().into(),
            "after_post" => if self.after_post { "1" } else { "" }.into(),
            "reload_secs" => number(self.reload_secs()),
            "reloads" => self.reloads().into(),
            "heading" => words.heading.into(),
            "reason" => (&*words.reason).into(),
            "order" => text(words.order),
            "until_label" => text(until.map(|until| until.label)),
            "until_left" => text(until.map(|until| &*until.left)),
            "message" => text(words.message.as_deref()),
            "kept" => text(words.kept.as_deref()),
            "ahead" => text(words.ahead.as_deref()),
            "waiting" => text(words.waiting.as_deref()),
            "moved" => text(words.moved.as_deref()),
            "wait" => text(words.wait.as_deref()),
            "until_text" => text(until_moment.map(|at| &*at.text)),
            "until_iso" => text(until_moment.map(|at| &*at.iso)),
            "until_at_ms" => number(until_moment.map(|at| at.at_ms)),
            "since_text" => text(since.map(|at| &*at.text)),
            "since_iso" => text(since.map(|at| &*at.iso)),
            "since_at_ms" => number(since.map(|at| at.at_ms)),
            "updated_text" => text(updated.map(|at| &*at.text)),
            "updated_iso" => text(updated.map(|at| &*at.iso)),
            "updated_at_ms" => number(updated.map(|at| at.at_ms)),
            _ => return None,
        }))
    }
}

fn text(text: Option<&str>) -> Cow<'_, str> {
    text.unwrap_or_default().into()
}

fn number(n: Option<u64>) -> Cow<'static, str> {
    n.map_or(Cow::Borrowed(""), |n| n.to_string().into())
}

/// Seconds after which a page has to be loaded again where no script of it asks; `None` where that
/// is of no use. At most half the time for which the place is kept, or reloading would lose it.
#[must_use]
pub(crate) fn reload_secs(view: &WaitingView<'_>, after_post: bool) -> Option<u64> {
    let usual = if after_post {
        RELOAD_SECS_AFTER_POST
    } else {
        RELOAD_SECS
    };
    let most = (view.position_grace.0 / 2_000).max(RELOAD_SECS_MIN);
    let asked = view.place.ask_after.map(DurationMs::secs_ceil)?;
    Some(asked.max(usual).min(most))
}

#[cfg(test)]
mod tests;
