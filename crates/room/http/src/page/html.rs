//! Our own waiting page, as HTML.
//!
//! It is one Mustache template. Each language's texts are filled in once, and a visitor's values
//! each time. Style and script are constants: the policy header has their digests, so nothing else
//! runs in the page. `words` decides on the words.

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

/// Style, exactly as in the page.
pub(crate) static STYLE: LazyLock<String> =
    LazyLock::new(|| pack::style(include_str!("../../templates/waiting.css")));

/// Script, exactly as in the page.
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

/// Builds what all pages share. Otherwise the first visitor of a rush would wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&TEMPLATES);
}

/// Addresses of a page: those that it polls, and those of its form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Links<'a> {
    /// Address of the position endpoint; ends with `/position?` and a query. With `/events?`
    /// instead it is the address of the event stream.
    pub(crate) position: &'a str,
    /// Address of the language form.
    pub(crate) language: &'a str,
    /// Path and query of the page, to which the form leads back. The client chooses it, so it is
    /// checked to be on this site and without quotes. Empty if it would make the page too large.
    pub(crate) back: &'a str,
}

/// Shortest reload interval of a page without script, in seconds. A shorter one would interrupt
/// readers and screen readers; the page has a button as well.
const RELOAD_SECS_MIN: u64 = 20;
/// Usual reload interval of a page without script, in seconds; longer if the verdict asks for it.
const RELOAD_SECS: u64 = PAGE_RELOAD.0 / 1_000;
/// Reload interval after a POST, in seconds: a reload removes the notice that nothing was sent.
const RELOAD_SECS_AFTER_POST: u64 = 60;

/// Values of the template, by name; an empty one hides its line.
struct Values<'a> {
    view: &'a WaitingView<'a>,
    links: Links<'a>,
    words: Words,
    after_post: bool,
}

/// Renders the page as HTML in UTF-8. It has at most 15,000 bytes, unless the operator's message is
/// long.
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

/// Returns our template with the constant texts of a language.
fn in_language(language: Language) -> String {
    let texts = Texts::of(language);
    let direction = if language.is_rtl() { "rtl" } else { "ltr" };
    // French has a space before a colon, where no line may break.
    let is_french = language == Language::French;
    let colon = if is_french { "]]\u{a0}:" } else { "]]:" };
    let mut source = pack::html(include_str!("../../templates/waiting.html"))
        .replace("]]:", colon)
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

/// Returns the options of languages, each with its own name. HTML lets an option end where the next
/// one begins.
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

/// Value that is written into the page as text.
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
            "position_url" => self.links.position.into(),
            "language_url" => self.links.language.into(),
            "back" => self.links.back.into(),
            "ask_after_ms" => number(view.position.refresh_after.map(|s| s.0)),
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

/// Returns the seconds until a page without script reloads; `None` if that is of no use. They are
/// at most half of the position's grace, or a reload could come too late.
#[must_use]
pub(crate) fn reload_secs(view: &WaitingView<'_>, after_post: bool) -> Option<u64> {
    let usual = if after_post {
        RELOAD_SECS_AFTER_POST
    } else {
        RELOAD_SECS
    };
    let most = (view.position_grace.0 / 2_000).max(RELOAD_SECS_MIN);
    let wanted = view.position.refresh_after.map(DurationMs::secs_ceil)?;
    Some(wanted.max(usual).min(most))
}

#[cfg(test)]
mod tests;
