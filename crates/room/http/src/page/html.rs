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
use anteroom_config::{Accent, PageLogo};
use anteroom_room::estimate::PAGE_RELOAD;
use ramhorns::Content;
use ramhorns::encoding::Encoder;

use crate::page::fields::{ByName, Fields, write_text};
use crate::page::grammar::filled;
use crate::page::template::{Page, PageTemplate};
use crate::page::texts::Texts;
use crate::page::time_words::{self, Part};
use crate::page::view::WaitingView;
use crate::page::words::{self, Fact, Words};

/// Style, exactly as in the page.
pub(crate) static STYLE: LazyLock<String> = LazyLock::new(|| {
    let own = include_str!("../../templates/waiting.css");
    pack::style(&[anteroom_proxy::error_page::STYLE, own].concat())
});

/// Script, exactly as in the page.
pub(crate) static SCRIPT: LazyLock<String> =
    LazyLock::new(|| pack::script(include_str!("../../templates/waiting.js")));

/// Script of a turn, which comes with the turn.
pub(crate) static TURN_SCRIPT: LazyLock<String> =
    LazyLock::new(|| pack::script(include_str!("../../templates/turn.js")));

static TEMPLATES: LazyLock<BTreeMap<Language, PageTemplate>> = LazyLock::new(|| {
    let templates = Language::ALL.map(|language| {
        let template = PageTemplate::new(in_language(language))
            .expect("the template is a constant that the tests render in every language");
        (language, template)
    });
    templates.into()
});

/// Builds what all pages share. Otherwise the first visitor of a rush would wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&TEMPLATES);
}

/// Addresses of a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Links<'a> {
    /// Paths of the gateway.
    pub(crate) paths: &'static Paths,
    /// Query of the links: `room=`, `lang=` and, at last, `back=`, which is `back` encoded.
    pub(crate) query: &'a str,
    /// Path and query of the page, to which a choice of the language leads back. The client chooses
    /// it, so it is checked to be on this site and without quotes. Empty if it would make the page
    /// too large.
    pub(crate) back: &'a str,
    /// Address of the visitor's entry; empty = that of the page. After a form it is another one: a
    /// GET there is not what the visitor wanted. Checked like `back`.
    pub(crate) entry: &'a str,
}

/// Paths of the gateway that pages name.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Paths {
    /// Position endpoint; ends with `/position`. With `/events` instead it is that of the event
    /// stream, and with `/turn` that of a turn.
    pub(crate) position: &'static str,
    /// Page with all languages, and the choice of one; templates make forms for it.
    pub(crate) language: &'static str,
    /// Page for browsers that keep no cookies.
    pub(crate) cookies: &'static str,
    /// Path that gives up the position, by POST.
    pub(crate) leave: &'static str,
}

impl Links<'_> {
    /// Returns the address of the position endpoint.
    pub(crate) fn position(&self) -> String {
        let query = self.query.split_once("&back=");
        let query = query.map_or(self.query, |(query, _)| query);
        [self.paths.position, "?", query].concat()
    }

    /// Returns the address of the page with all languages.
    pub(crate) fn languages(&self) -> String {
        [self.paths.language, "?", self.query].concat()
    }

    /// Returns the address of the page for browsers that keep no cookies.
    pub(crate) fn cookies(&self) -> String {
        [self.paths.cookies, "?", self.query].concat()
    }

    /// Returns the address that gives up the position.
    pub(crate) fn leave(&self) -> String {
        [self.paths.leave, "?", self.query].concat()
    }
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

/// Renders the page. It has at most 20,000 bytes, unless the operator's message, facts or logo are
/// long.
#[must_use]
pub(crate) fn page(view: &WaitingView<'_>, links: Links<'_>, after_post: bool) -> Page<'static> {
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
        .replace("[[tag]]", language.tag())
        .replace("[[direction]]", direction);
    for (name, text) in texts.all() {
        source = source.replace(&format!("[[{name}]]"), &escaped(text));
    }
    source
}

/// Escapes a text for HTML and for attributes in double quotes.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let is_special = |c: char| matches!(c, '&' | '<' | '>' | '"');
    if !text.contains(is_special) {
        return text.into();
    }
    let mut whole = String::with_capacity(text.len() + 32);
    for part in text.split_inclusive(is_special) {
        let mut plain = part.chars();
        let special = match plain.next_back() {
            Some('&') => "&amp;",
            Some('<') => "&lt;",
            Some('>') => "&gt;",
            Some('"') => "&quot;",
            _ => {
                whole.push_str(part);
                continue;
            }
        };
        whole.push_str(plain.as_str());
        whole.push_str(special);
    }
    whole.into()
}

impl Values<'_> {
    fn reload_secs(&self) -> Option<u64> {
        Some(reload_secs(self.view, self.after_post))
    }

    fn reloads(&self) -> String {
        let texts = Texts::of(self.view.language);
        let time = |seconds| texts.grammar.units(seconds, texts.grammar.seconds.alone);
        let reloads = |seconds| filled(texts.reloads, "{time}", &time(seconds));
        self.reload_secs().map(reloads).unwrap_or_default()
    }

    /// Returns a fact below the number, by its position.
    fn fact(&self, at: usize) -> Option<&Fact> {
        self.words.facts.get(at)
    }

    /// Returns a value of the visitor's state that is a text of the page.
    fn of_words(&self, name: &str) -> Option<Value<'_>> {
        let words = &self.words;
        Some(Value::Timed(match name {
            "why" => line(&words.why),
            "label" => words.label,
            "number" => line(&words.number),
            "note" => line(&words.note),
            "moved" => line(&words.moved),
            "message_at" => line(&words.message_at),
            "rise" => line(&words.rise),
            "keep_title" => words.keep_title,
            "keep" => line(&words.keep),
            "l1" => self.fact(0).map(|fact| fact.label),
            "v1" => self.fact(0).map(|fact| &*fact.value),
            "l2" => self.fact(1).map(|fact| fact.label),
            "v2" => self.fact(1).map(|fact| &*fact.value),
            _ => return None,
        }))
    }

    /// Returns a value of the operator's look of the page.
    fn of_look(&self, name: &str) -> Option<Value<'_>> {
        let page = self.view.page;
        Some(match name {
            "brand" => Value::Text(self.view.brand().into()),
            "accent" => Value::Html(
                page.and_then(|page| page.accent)
                    .map_or_else(String::new, |accent| {
                        format!("<style>{}</style>", accent_style(&accent))
                    }),
            ),
            "logo" => Value::Text(text(page.and_then(|page| match &page.logo {
                Some(PageLogo::Data(data)) => Some(&**data),
                _ => None,
            }))),
            "facts" => {
                let facts = page.map_or(&[][..], |page| &page.facts);
                let facts = facts.iter().map(|fact| format!("<p>{}</p>", escaped(fact)));
                Value::Html(facts.collect())
            }
            "help" => Value::Text(text(page.and_then(|page| page.help.as_deref()))),
            "imprint" => Value::Text(text(page.and_then(|page| page.imprint.as_deref()))),
            _ => return None,
        })
    }
}

fn line<'a>(line: &'a Option<Cow<'static, str>>) -> Option<&'a str> {
    line.as_deref()
}

/// Returns the style of an accent. Its digest is in the policy of the room's page.
pub(crate) fn accent_style(accent: &Accent) -> String {
    let (fill, on, dark) = (accent.fill(), accent.on(), accent.dark());
    format!(
        ":root{{--accent:{fill};--fill:{fill};--on:{on}}}\
         @media (prefers-color-scheme:dark){{:root{{--accent:{dark}}}}}"
    )
}

/// Returns the steps before a draw as items of a list.
fn steps(words: &Words) -> String {
    let steps = words.steps.iter().filter_map(|step| step.split_once('|'));
    let items = steps.map(|(time, text)| {
        let time = marked(time);
        format!("<li><b>{time}</b> {}", escaped(text))
    });
    items.collect()
}

/// Returns a text as HTML, with its points in time as elements that the script converts.
fn marked(text: &str) -> String {
    let parts = time_words::parts(text).into_iter().map(|part| match part {
        Part::Words(words) => escaped(words),
        Part::Time(moment, form) => {
            let (iso, sign) = (moment.iso(), form.sign());
            format!("<time datetime=\"{iso}\" data-form=\"{sign}\">{moment}</time>").into()
        }
    });
    parts.collect()
}

/// Value of the template.
enum Value<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// Text that may have points in time; `None` = empty.
    Timed(Option<&'a str>),
    /// HTML of our own.
    Html(String),
}

impl Content for Value<'_> {
    fn is_truthy(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Timed(text) => text.is_some_and(|text| !text.is_empty()),
            Self::Html(html) => !html.is_empty(),
        }
    }

    fn render_escaped<E: Encoder>(&self, encoder: &mut E) -> Result<(), E::Error> {
        match self {
            Self::Text(text) => write_text(text, encoder),
            Self::Timed(Some(text)) if text.contains('{') => encoder.write_unescaped(&marked(text)),
            Self::Timed(text) => write_text(text.unwrap_or_default(), encoder),
            Self::Html(html) => encoder.write_unescaped(html),
        }
    }

    fn render_unescaped<E: Encoder>(&self, encoder: &mut E) -> Result<(), E::Error> {
        self.render_escaped(encoder)
    }
}

impl Fields for Values<'_> {
    type Value<'v>
        = Value<'v>
    where
        Self: 'v;

    fn field(&self, name: &str) -> Option<Value<'_>> {
        let (view, words, links) = (self.view, &self.words, self.links);
        let flag = |is_set: bool| Cow::from(if is_set { "1" } else { "" });
        Some(Value::Text(match name {
            "settings" => {
                let mut settings = String::with_capacity(512);
                write_settings(&mut settings, view, links, self.after_post);
                return Some(Value::Html(settings));
            }
            "language_url" => links.languages().into(),
            "entry" => links.entry.into(),
            "leave_url" if view.has_queue() => links.leave().into(),
            "leave_url" => "".into(),
            "after_post" => flag(self.after_post),
            "not_sent_text" => {
                let texts = Texts::of(view.language);
                words::noun(view, texts.not_sent_text).into()
            }
            "reload_secs" => flag(true),
            "reload" => reload(view, links, self.after_post).into(),
            "reloads" => self.reloads().into(),
            "title" => (&*words.title).into(),
            "tag" => words.tag.tag.into(),
            "kind" => words.tag.kind.class().into(),
            "heading" => words.heading.into(),
            "size" => if words.is_big { "big" } else { "mid" }.into(),
            "message" => text(words.message.as_deref()),
            "reference" => {
                let code = view.reference.map(|code| code.to_string());
                code.unwrap_or_default().into()
            }
            "steps" => return Some(Value::Html(steps(words))),
            "updated" => {
                let texts = Texts::of(view.language);
                let at = format!("{{{}*}}", view.now.0);
                return Some(Value::Html(marked(&filled(texts.updated, "{at}", &at))));
            }
            _ => return self.of_words(name).or_else(|| self.of_look(name)),
        }))
    }
}

/// Writes the settings of the script, as attributes of its element, without those that are not set.
pub(crate) fn write_settings(
    out: &mut String,
    view: &WaitingView<'_>,
    links: Links<'_>,
    after_post: bool,
) {
    let mut put = |name: &str, value: &str| {
        for part in [" ", name, "=\"", &escaped(value), "\""] {
            out.push_str(part);
        }
    };
    put("lang", view.language.tag());
    put("data-position", &links.position());
    put("data-cookies", &links.cookies());
    if !links.entry.is_empty() {
        put("data-entry", links.entry);
    }
    let opening = words::opening(view).map(|opening| opening.at());
    let since = words::since(view).map(|since| since.at());
    let mut digits = itoa::Buffer::new();
    for (name, number) in [
        ("data-ask", Some(view.refresh_after().0)),
        ("data-now", Some(view.now.0)),
        ("data-grace", Some(view.position_grace.0)),
        ("data-until", opening.map(|at| at.0)),
        ("data-since", since.map(|at| at.0)),
    ] {
        if let Some(number) = number {
            put(name, digits.format(number));
        }
    }
    for (name, is_set) in [
        ("data-post", after_post),
        ("data-loss", view.position.loss.is_some()),
        ("data-full", !view.has_queue()),
    ] {
        if is_set {
            put(name, "1");
        }
    }
}

/// Returns the value of a reload without script. After a form it leads to the entry.
pub(crate) fn reload(view: &WaitingView<'_>, links: Links<'_>, after_post: bool) -> String {
    let seconds = reload_secs(view, after_post);
    match links.entry {
        "" => seconds.to_string(),
        entry => format!("{seconds};url={entry}"),
    }
}

fn text(text: Option<&str>) -> Cow<'_, str> {
    text.unwrap_or_default().into()
}

/// Returns the seconds until a page without script reloads. They are at most half of the position's
/// grace, or a reload could come too late.
#[must_use]
pub(crate) fn reload_secs(view: &WaitingView<'_>, after_post: bool) -> u64 {
    let usual = if after_post {
        RELOAD_SECS_AFTER_POST
    } else {
        RELOAD_SECS
    };
    let most = (view.position_grace.0 / 2_000).max(RELOAD_SECS_MIN);
    view.refresh_after().secs_ceil().max(usual).min(most)
}

#[cfg(test)]
mod tests;
