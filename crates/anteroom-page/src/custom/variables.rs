//! Which variables does a template have?
//!
//! All keys of the JSON answer by their names there, four that the templates of hosted waiting rooms
//! compute from them, and ours: the words of our own page in the visitor's language, and addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anteroom_core::decision::{Place, QueueReason};
use anteroom_core::rules::Rules;
use anteroom_core::time::{Millis, Span};
use ramhorns::Content;
use ramhorns::encoding::Encoder;

use crate::page::Links;
use crate::texts::Texts;
use crate::view::WaitingView;
use crate::words::Words;

/// Variables by name.
pub(super) type Variables<'a> = BTreeMap<Cow<'static, str>, Value<'a>>;

/// A value; in sections, zero, the empty text and what is not known are false.
#[derive(Debug, PartialEq)]
pub(super) enum Value<'a> {
    Unknown,
    Switch(bool),
    Number(u64),
    Text(Cow<'a, str>),
}

impl Content for Value<'_> {
    fn is_truthy(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Switch(is_on) => *is_on,
            Self::Number(number) => *number != 0,
            Self::Text(text) => !text.is_empty(),
        }
    }

    fn capacity_hint(&self, _: &ramhorns::Template<'_>) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => 8,
        }
    }

    fn render_escaped<E: Encoder>(&self, encoder: &mut E) -> Result<(), E::Error> {
        match self {
            Self::Unknown => Ok(()),
            Self::Switch(is_on) => encoder.format_unescaped(is_on),
            Self::Number(number) => encoder.format_unescaped(number),
            Self::Text(text) => escaped(text, encoder),
        }
    }

    fn render_unescaped<E: Encoder>(&self, encoder: &mut E) -> Result<(), E::Error> {
        match self {
            Self::Text(text) => encoder.write_unescaped(text),
            other => other.render_escaped(encoder),
        }
    }
}

/// The engine leaves single quotes as they are, and templates put attributes into them, too.
fn escaped<E: Encoder>(text: &str, encoder: &mut E) -> Result<(), E::Error> {
    for (at, part) in text.split('\'').enumerate() {
        if at > 0 {
            encoder.write_unescaped("&#39;")?;
        }
        encoder.write_escaped(part)?;
    }
    Ok(())
}

/// The variables for a visitor.
pub(super) fn of<'a>(view: &WaitingView<'a>, links: Links<'a>, after_post: bool) -> Variables<'a> {
    let mut variables = of_reference(view);
    let texts = Texts::of(view.language);
    let words = Words::of(view);
    let direction = if texts.grammar.is_rtl { "rtl" } else { "ltr" };
    let (opens_at, reopens_at) = match view.place.reason {
        QueueReason::NotOpenYet { .. } => (moment(&words), Value::Unknown),
        QueueReason::Recovering { .. } => (Value::Unknown, moment(&words)),
        _ => (Value::Unknown, Value::Unknown),
    };
    let ours = [
        ("room", text(view.room)),
        ("language", text(view.language.tag())),
        ("direction", text(direction)),
        ("message", view.message.map_or(Value::Unknown, text)),
        ("title", text(words.title)),
        ("heading", text(words.heading)),
        ("reasonText", text(words.reason)),
        ("orderText", optional(words.order)),
        ("keptText", optional(words.kept)),
        ("peopleAheadText", optional(words.ahead)),
        ("waitRangeText", optional(words.wait)),
        (
            "peopleWaiting",
            Value::Number(view.place.people_waiting.into()),
        ),
        (
            "admittedLastMinute",
            optional_number(view.admitted_last_minute.map(u64::from)),
        ),
        ("opensAt", opens_at),
        ("reopensAt", reopens_at),
        (
            "askAfterMs",
            optional_number(view.place.ask_after.map(|span| span.0)),
        ),
        (
            "placeGraceSeconds",
            Value::Number(view.place_grace.0 / 1_000),
        ),
        ("isAfterPost", Value::Switch(after_post)),
        ("placeUrl", text(links.place)),
        ("languageUrl", text(links.language)),
        ("backUrl", text(links.back)),
    ];
    variables.extend(ours.map(|(name, value)| (name.into(), value)));
    variables
}

/// Every name that a template may use.
pub(super) fn names() -> Vec<String> {
    let place = Place {
        reason: QueueReason::Full,
        people_ahead: None,
        people_waiting: 0,
        wait: None,
        ask_after: Some(Span(0)),
        arrived_at: Millis::ZERO,
    };
    let view = WaitingView::new("", &Rules::default(), place, Millis::ZERO);
    let links = Links {
        place: "",
        language: "",
        back: "",
    };
    of(&view, links, false)
        .into_keys()
        .map(Cow::into_owned)
        .collect()
}

fn of_reference<'a>(view: &WaitingView<'_>) -> Variables<'a> {
    let room = view.body().cf_waiting_room;
    let hours = |minutes: u64| (minutes / 60, minutes % 60);
    let (wait_hours, wait_minutes) = hours(room.wait_time);
    let (start_hours, start_minutes) = hours(room.time_until_event_start);
    // A struct of ours with plain keys: it cannot fail, and if it did there would be no variables.
    let keys = serde_json::to_value(room).unwrap_or_default();
    let keys = match keys {
        serde_json::Value::Object(keys) => keys,
        _ => serde_json::Map::new(),
    };
    let mut variables: Variables<'a> = keys
        .into_iter()
        .map(|(name, value)| (Cow::Owned(name), from_json(value)))
        .collect();
    variables.extend(
        [
            ("waitTimeHours", wait_hours),
            ("waitTimeHourMinutes", wait_minutes),
            ("timeUntilEventStartHours", start_hours),
            ("timeUntilEventStartHourMinutes", start_minutes),
        ]
        .map(|(name, number)| (name.into(), Value::Number(number))),
    );
    variables
}

fn from_json(value: serde_json::Value) -> Value<'static> {
    match value {
        serde_json::Value::Bool(is_on) => Value::Switch(is_on),
        serde_json::Value::Number(number) => optional_number(number.as_u64()),
        serde_json::Value::String(text) => Value::Text(text.into()),
        _ => Value::Unknown,
    }
}

/// The point in time that the page counts down to.
fn moment<'a>(words: &Words) -> Value<'a> {
    let until = words.until.as_ref();
    optional(until.map(|until| until.moment.iso.clone()))
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Value<'a> {
    Value::Text(text.into())
}

fn optional<'a>(known: Option<impl Into<Cow<'a, str>>>) -> Value<'a> {
    known.map_or(Value::Unknown, text)
}

fn optional_number(number: Option<u64>) -> Value<'static> {
    number.map_or(Value::Unknown, Value::Number)
}
