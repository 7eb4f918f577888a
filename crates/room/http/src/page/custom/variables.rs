//! Variables of templates.
//!
//! They are all keys of the JSON response, four that templates of hosted waiting rooms compute from
//! them, and ours: the words of our own page in the visitor's language, addresses, and the page's
//! script.

use std::borrow::Cow;
use std::cell::OnceCell;

use anteroom_room::queue_position::QueueReason;
use anteroom_room::time::Timestamp;
use anteroom_store::wire::waiting_status::WaitingBody;
use ramhorns::Content;
use ramhorns::encoding::Encoder;

use super::script;
use crate::page::fields::{Fields, write_text};
use crate::page::html::Links;
use crate::page::time_words::Moment;
use crate::page::view::WaitingView;
use crate::page::words;

/// Value of a variable. In sections, zero, empty texts and unknown values are false.
#[derive(Debug, PartialEq)]
pub(super) enum Value<'a> {
    Unknown,
    UnknownNumber,
    /// Unknown number in a script, where nothing at all would be a mistake.
    Null,
    Switch(bool),
    Number(u64),
    Text(Cow<'a, str>),
    /// HTML of our own.
    Html(String),
}

impl Content for Value<'_> {
    fn is_truthy(&self) -> bool {
        match self {
            Self::Unknown | Self::UnknownNumber | Self::Null => false,
            Self::Switch(is_on) => *is_on,
            Self::Number(number) => *number != 0,
            Self::Text(text) => !text.is_empty(),
            Self::Html(html) => !html.is_empty(),
        }
    }

    fn capacity_hint(&self, _: &ramhorns::Template<'_>) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Html(html) => html.len(),
            _ => 8,
        }
    }

    fn render_escaped<E: Encoder>(&self, encoder: &mut E) -> Result<(), E::Error> {
        match self {
            Self::Unknown | Self::UnknownNumber => Ok(()),
            Self::Null => encoder.write_unescaped("null"),
            Self::Switch(is_on) => encoder.format_unescaped(is_on),
            Self::Number(number) => encoder.format_unescaped(number),
            Self::Text(text) => escaped(text, encoder),
            Self::Html(html) => escaped(html, encoder),
        }
    }

    fn render_unescaped<E: Encoder>(&self, encoder: &mut E) -> Result<(), E::Error> {
        match self {
            Self::Text(text) => encoder.write_unescaped(text),
            Self::Html(html) => encoder.write_unescaped(html),
            other => other.render_escaped(encoder),
        }
    }
}

/// Writes a text with single quotes escaped as well: the engine leaves them, and templates quote
/// attributes with them.
fn escaped<E: Encoder>(text: &str, encoder: &mut E) -> Result<(), E::Error> {
    for (at, part) in text.split('\'').enumerate() {
        if at > 0 {
            encoder.write_unescaped("&#39;")?;
        }
        write_text(part, encoder)?;
    }
    Ok(())
}

/// Variables for one visitor. Only those that the template names are computed.
pub(super) struct Variables<'a> {
    view: &'a WaitingView<'a>,
    links: Links<'a>,
    after_post: bool,
    body: OnceCell<WaitingBody>,
}

/// Variable of the page's script.
pub(super) const SCRIPT: &str = "anteroomScript";

/// End of a name that stands in a script of the template. Templates cannot write it themselves.
pub(super) const IN_SCRIPT: char = '?';

/// Names that a template may use: those of hosted waiting rooms first, then ours.
pub(super) const NAMES: [&str; 55] = [
    "inWaitingRoom",
    "waitTimeKnown",
    "waitTime",
    "waitTimeHours",
    "waitTimeHourMinutes",
    "waitTime25Percentile",
    "waitTime50Percentile",
    "waitTime75Percentile",
    "waitTimeFormatted",
    "queueIsFull",
    "queueAll",
    "lastUpdated",
    "refreshIntervalSeconds",
    "queueingMethod",
    "isFIFOQueue",
    "isRandomQueue",
    "isPassthroughQueue",
    "isRejectQueue",
    "isEventActive",
    "isEventPrequeueing",
    "timeUntilEventStart",
    "timeUntilEventStartHours",
    "timeUntilEventStartHourMinutes",
    "timeUntilEventStartFormatted",
    "timeUntilEventEnd",
    "timeUntilEventEndFormatted",
    "shuffleAtEventStart",
    "turnstile",
    "infiniteQueue",
    "position",
    "peopleAhead",
    "reason",
    "message",
    "room",
    "language",
    "direction",
    "title",
    "heading",
    "reasonText",
    "orderText",
    "keptText",
    "peopleAheadText",
    "waitRangeText",
    "peopleWaiting",
    "admittedLastMinute",
    "opensAt",
    "reopensAt",
    "askAfterMs",
    "positionGraceSeconds",
    "isAfterPost",
    "positionUrl",
    "languageUrl",
    "languagesUrl",
    "backUrl",
    SCRIPT,
];

impl<'a> Variables<'a> {
    pub(super) const fn new(view: &'a WaitingView<'a>, links: Links<'a>, after_post: bool) -> Self {
        Self {
            view,
            links,
            after_post,
            body: OnceCell::new(),
        }
    }

    /// Returns a variable of the JSON response, or one that templates compute from it.
    fn of_reference(&self, name: &str) -> Option<Value<'_>> {
        let room = || &self.body.get_or_init(|| self.view.body()).cf_waiting_room;
        Some(match name {
            "inWaitingRoom" => Value::Switch(room().in_waiting_room),
            "waitTimeKnown" => Value::Switch(room().wait_time_known),
            "waitTime" => Value::Number(room().wait_time),
            "waitTimeHours" => Value::Number(room().wait_time / 60),
            "waitTimeHourMinutes" => Value::Number(room().wait_time % 60),
            "waitTime25Percentile" => Value::Number(room().wait_time_25_percentile),
            "waitTime50Percentile" => Value::Number(room().wait_time_50_percentile),
            "waitTime75Percentile" => Value::Number(room().wait_time_75_percentile),
            "waitTimeFormatted" => text(&room().wait_time_formatted),
            "queueIsFull" => Value::Switch(room().queue_is_full),
            "queueAll" => Value::Switch(room().queue_all),
            "lastUpdated" => text(&room().last_updated),
            "refreshIntervalSeconds" => Value::Number(room().refresh_interval_seconds),
            "queueingMethod" => text(&room().queueing_method),
            "isFIFOQueue" => Value::Switch(room().is_fifo_queue),
            "isRandomQueue" => Value::Switch(room().is_random_queue),
            "isPassthroughQueue" => Value::Switch(room().is_passthrough_queue),
            "isRejectQueue" => Value::Switch(room().is_reject_queue),
            "isEventActive" => Value::Switch(room().is_event_active),
            "isEventPrequeueing" => Value::Switch(room().is_event_prequeueing),
            "timeUntilEventStart" => Value::Number(room().time_until_event_start),
            "timeUntilEventStartHours" => Value::Number(room().time_until_event_start / 60),
            "timeUntilEventStartHourMinutes" => Value::Number(room().time_until_event_start % 60),
            "timeUntilEventStartFormatted" => text(&room().time_until_event_start_formatted),
            "timeUntilEventEnd" => Value::Number(room().time_until_event_end),
            "timeUntilEventEndFormatted" => text(&room().time_until_event_end_formatted),
            "shuffleAtEventStart" => Value::Switch(room().shuffle_at_event_start),
            "turnstile" => text(&room().turnstile),
            "infiniteQueue" => Value::Switch(room().infinite_queue),
            "position" => optional_number(room().position),
            "peopleAhead" => optional_number(room().people_ahead.map(u64::from)),
            "reason" => text(&room().reason),
            "message" => optional(self.view.message()),
            _ => return None,
        })
    }

    fn of_ours(&self, name: &str) -> Option<Value<'_>> {
        let view = self.view;
        let position = &view.position;
        Some(match name {
            "room" => text(view.room),
            "language" => text(view.language.tag()),
            "direction" => text(direction(view)),
            "peopleWaiting" => Value::Number(position.people_waiting.into()),
            "admittedLastMinute" => optional_number(view.admitted_last_minute.map(u64::from)),
            "opensAt" => match position.reason {
                QueueReason::NotOpenYet { opens_at } => moment(opens_at),
                _ => Value::Unknown,
            },
            "reopensAt" => match position.reason {
                QueueReason::Recovering { reopens_at } => moment(reopens_at),
                _ => Value::Unknown,
            },
            "askAfterMs" => Value::Number(view.refresh_after().0),
            "positionGraceSeconds" => Value::Number(view.position_grace.0 / 1_000),
            "isAfterPost" => Value::Switch(self.after_post),
            "positionUrl" => Value::Text(self.links.position().into()),
            "languageUrl" => text(self.links.paths.language),
            "languagesUrl" => Value::Text(self.links.languages().into()),
            "backUrl" => text(self.links.back),
            SCRIPT => Value::Html(script::element(view, self.links, self.after_post)),
            _ => {
                let line = words::named(view, name)?;
                line.map_or(Value::Unknown, Value::Text)
            }
        })
    }
}

impl Fields for Variables<'_> {
    type Value<'v>
        = Value<'v>
    where
        Self: 'v;

    fn field(&self, name: &str) -> Option<Value<'_>> {
        let in_script = name.strip_suffix(IN_SCRIPT);
        let name = in_script.unwrap_or(name);
        let value = self.of_ours(name).or_else(|| self.of_reference(name))?;
        Some(match value {
            Value::UnknownNumber if in_script.is_some() => Value::Null,
            value => value,
        })
    }
}

fn direction(view: &WaitingView<'_>) -> &'static str {
    if view.language.is_rtl() { "rtl" } else { "ltr" }
}

/// Returns a point in time to which the page counts down.
fn moment(at: Timestamp) -> Value<'static> {
    let moment = Moment::of_day(at);
    moment.map_or(Value::Unknown, |moment| Value::Text(moment.iso().into()))
}

const fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

fn optional(known: Option<&str>) -> Value<'_> {
    known.map_or(Value::Unknown, text)
}

fn optional_number(number: Option<u64>) -> Value<'static> {
    number.map_or(Value::UnknownNumber, Value::Number)
}
