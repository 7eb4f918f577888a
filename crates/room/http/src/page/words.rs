//! Words of the page, from the facts of the decision.
//!
//! The page is rendered from these words, and its script replaces them by those of the position
//! endpoint. Layout, escaping and HTTP are not known here.
//!
//! A text may have points in time: `{1785578400000}` is one in ms, which page and script write in
//! the visitor's time zone. [`Moment`] knows the forms. Braces of other people's texts cannot be
//! mistaken for one: messages and names are fields of their own.

mod loss;
mod state;
mod turn;

use std::borrow::Cow;

use anteroom_room::queue_position::{QueueReason, Rise};
use anteroom_room::rules::QueueingMethod;
use anteroom_room::time::{DurationMs, Timestamp};

use crate::page::grammar::filled;
use crate::page::texts::Texts;
use crate::page::time_words::{self, Case, Moment};
use crate::page::view::WaitingView;
use loss::LossWords;
pub(crate) use state::Tag;
pub(crate) use turn::TurnWords;

/// Text of the page; `None` hides its line.
type Line = Option<Cow<'static, str>>;

/// Label and value of a fact.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) value: Cow<'static, str>,
}

/// Words of the page; `None` hides a line. Programs and templates get those without points in time;
/// the rest is the layout of our own page.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Words {
    /// Title of the tab.
    pub(crate) title: String,
    /// Name of the state in one to three words, and its look.
    #[serde(flatten)]
    pub(crate) tag: Tag,
    /// Heading of the page.
    pub(crate) heading: &'static str,
    /// Reason of waiting, for templates and programs.
    pub(crate) reason: Cow<'static, str>,
    /// Text below the heading: nothing while the queue moves.
    #[serde(skip)]
    pub(crate) why: Line,
    /// Operator's message.
    pub(crate) message: Option<String>,
    /// Time of the message.
    #[serde(skip)]
    pub(crate) message_at: Line,
    /// Rule of the queue, for templates and programs.
    pub(crate) order: Option<&'static str>,
    /// Promise that a reload loses nothing, and for how long; for templates and programs.
    pub(crate) kept: Option<String>,
    /// Number of people ahead.
    pub(crate) ahead: Line,
    /// Number of all waiting visitors; only for a queue without an order.
    pub(crate) waiting: Option<String>,
    /// Admissions during the last minute.
    pub(crate) moved: Line,
    /// Estimated wait.
    pub(crate) wait: Line,
    /// Event at a fixed time.
    pub(crate) until: Option<Until>,
    /// Arrival of the visitor.
    pub(crate) since: Option<Moment>,
    /// Time of these facts.
    pub(crate) updated: Option<Moment>,
    /// Label of the one big number.
    #[serde(skip)]
    pub(crate) label: Option<&'static str>,
    /// The one big number.
    #[serde(skip)]
    pub(crate) number: Line,
    /// Whether the number is the news, and not the sentence.
    #[serde(skip)]
    pub(crate) is_big: bool,
    /// Explanation of the number.
    #[serde(skip)]
    pub(crate) note: Line,
    /// Up to two facts below the number.
    #[serde(skip)]
    pub(crate) facts: Vec<Fact>,
    /// Reason why it takes longer than before.
    pub(crate) rise: Line,
    /// Steps before a draw, each with its time in front of a bar.
    #[serde(skip)]
    pub(crate) steps: Vec<String>,
    /// Promise: a short sentence in bold, and a longer one.
    #[serde(skip)]
    pub(crate) keep_title: Option<&'static str>,
    #[serde(skip)]
    pub(crate) keep: Line,
    /// Whether tag, heading and reason tell of a loss. The page shows that until it is left.
    #[serde(skip)]
    pub(crate) is_loss: bool,
}

/// Event at a fixed time; apart from the estimated wait.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Until {
    /// Label of the event.
    pub(crate) label: &'static str,
    /// Time of the event.
    pub(crate) moment: Moment,
    /// Time until the event.
    pub(crate) left: String,
}

impl Words {
    /// Returns the title with `{n}` in place of the position, which the script fills in.
    pub(crate) fn title_pattern(&self, view: &WaitingView<'_>) -> String {
        title(view, self.heading, |_| "{n}".to_owned())
    }

    /// Returns the words for these facts, in their language.
    #[must_use]
    pub(crate) fn of(view: &WaitingView<'_>) -> Self {
        let texts = Texts::of(view.language);
        let lost = lost(view, texts);
        let tag = lost
            .as_ref()
            .map_or_else(|| state::tag(view, texts), |lost| lost.tag);
        let heading = lost
            .as_ref()
            .map_or_else(|| state::heading(view, texts), |lost| lost.heading);
        let is_loss = lost.is_some();
        let why = lost
            .map(|lost| lost.why.into())
            .or_else(|| why(view, texts));
        let until = until(view, texts);
        let number = number(view, texts, until.as_ref());
        let (keep_title, keep) = keep(view, texts);
        Self {
            title: title(view, heading, |place| texts.grammar.count(place)),
            tag,
            heading,
            reason: reason(view, texts),
            why,
            message: view.message().map(str::to_owned),
            message_at: message_at(view),
            order: order(view, texts),
            kept: view.has_queue().then(|| kept(view, texts)),
            ahead: ahead(view, texts),
            waiting: waiting(view, texts),
            moved: moved(view, texts),
            wait: wait(view, texts),
            label: label(view, texts, is_loss, number.is_some()),
            is_big: view.is_moving() && view.place().is_some() && !is_loss,
            number,
            note: (!view.position.is_counted && view.has_order())
                .then(|| texts.counting_text.into()),
            facts: facts(view, texts, until.as_ref()),
            until,
            rise: view
                .position
                .rise
                .map(|rise| noun(view, rise_text(texts, rise)).into()),
            steps: steps(view, texts),
            keep_title,
            keep,
            is_loss,
            since: since(view),
            updated: Moment::of_clock(view.now),
        }
    }
}

fn lost(view: &WaitingView<'_>, texts: &'static Texts) -> Option<LossWords> {
    let loss = view.position.loss;
    loss.map(|loss| loss::words(view, texts, loss))
}

/// Returns the time of the opening; `None` unless the room has not opened, and its time is known.
pub(crate) fn opening(view: &WaitingView<'_>) -> Option<Moment> {
    match view.position.reason {
        QueueReason::NotOpenYet { opens_at } => Moment::of_day(opens_at),
        _ => None,
    }
}

/// Returns the arrival of the visitor; `None` without a queue.
pub(crate) fn since(view: &WaitingView<'_>) -> Option<Moment> {
    let arrived_at = Some(view.position.arrived_at).filter(|_| view.has_queue());
    arrived_at.and_then(Moment::of_clock)
}

/// Returns a text of the page by its name in templates, without the work for all others; `None` if
/// there is no such name, and an empty line if it is hidden.
pub(crate) fn named(view: &WaitingView<'_>, name: &str) -> Option<Line> {
    let texts = Texts::of(view.language);
    let heading = || {
        let lost = lost(view, texts).map(|lost| lost.heading);
        lost.unwrap_or_else(|| state::heading(view, texts))
    };
    Some(match name {
        "title" => Some(title(view, heading(), |place| texts.grammar.count(place)).into()),
        "heading" => Some(heading().into()),
        "reasonText" => Some(reason(view, texts)),
        "orderText" => order(view, texts).map(Cow::from),
        "keptText" => view.has_queue().then(|| kept(view, texts).into()),
        "peopleAheadText" => ahead(view, texts),
        "waitRangeText" => wait(view, texts),
        _ => return None,
    })
}

/// Fills in the word for the site: the operator's own one, if it is in the visitor's language.
pub(crate) fn noun(view: &WaitingView<'_>, text: &'static str) -> String {
    let own = view.page.and_then(|page| page.noun_in(view.language));
    let noun = own.unwrap_or_else(|| Texts::of(view.language).noun);
    filled(text, "{noun}", noun)
}

/// Returns the title with the number first, because a background tab shows little more. The name of
/// the site follows.
fn title(view: &WaitingView<'_>, heading: &str, count: impl Fn(u64) -> String) -> String {
    let brand = view.brand();
    match view.place() {
        Some(place) => {
            let line = Texts::of(view.language).title_line;
            format!("{} \u{b7} {brand}", filled(line, "{n}", &count(place)))
        }
        None => format!("{heading} \u{b7} {brand}"),
    }
}

fn reason(view: &WaitingView<'_>, texts: &'static Texts) -> Cow<'static, str> {
    match view.position.reason {
        QueueReason::NotYourTurn if view.method == QueueingMethod::Random => texts.lot_moves.into(),
        QueueReason::Full | QueueReason::NotYourTurn => texts.moving.into(),
        QueueReason::QueueAll if view.is_paused => texts.paused.into(),
        QueueReason::QueueAll => texts.queue_all.into(),
        QueueReason::NotOpenYet { .. } => match opening(view) {
            Some(_) => texts.early.into(),
            None => texts.early_unknown.into(),
        },
        QueueReason::Rejecting if view.is_closed() => texts.closed.into(),
        QueueReason::Rejecting => noun(view, texts.rejecting).into(),
        QueueReason::StoreUnavailable => noun(view, texts.store_away).into(),
        QueueReason::Recovering { reopens_at } => {
            let reason = noun(view, texts.recovering);
            match Moment::of_clock(reopens_at) {
                Some(_) => reason.into(),
                None => format!("{reason} {}", texts.recovering_unknown).into(),
            }
        }
        QueueReason::OriginDown => noun(view, texts.origin_down).into(),
    }
}

/// Returns what the page says below the heading. While a line moves, the number is the news. Before
/// a draw, the steps are.
fn why(view: &WaitingView<'_>, texts: &'static Texts) -> Line {
    if view.is_moving() {
        let is_lot = view.method == QueueingMethod::Random;
        return is_lot.then(|| texts.order_lot.into());
    }
    steps(view, texts).is_empty().then(|| reason(view, texts))
}

/// Returns when the operator set the message, with the day if it was not today or last night.
fn message_at(view: &WaitingView<'_>) -> Line {
    const RECENT: DurationMs = DurationMs::from_secs(12 * 3_600);
    let at = view.message_at?;
    let form = if view.now.since(at) > RECENT { "+" } else { "" };
    Some(format!("{{{}{form}}}", at.0).into())
}

/// Returns the rule of the queue; `None` if the method has none.
fn order(view: &WaitingView<'_>, texts: &'static Texts) -> Option<&'static str> {
    let is_before = matches!(view.position.reason, QueueReason::NotOpenYet { .. });
    match view.method {
        _ if !view.has_queue() => None,
        QueueingMethod::Fifo if view.draw && is_before => Some(texts.order_draw),
        QueueingMethod::Fifo if view.draw => Some(texts.order_drawn),
        QueueingMethod::Fifo => Some(texts.order_first),
        QueueingMethod::Random => Some(texts.order_lot),
        QueueingMethod::Passthrough | QueueingMethod::Reject => None,
    }
}

/// Formats a number of people.
fn people(n: u32, texts: &'static Texts) -> Cow<'static, str> {
    match n {
        0 => texts.nobody.into(),
        n => texts.grammar.count(n.into()).into(),
    }
}

fn ahead(view: &WaitingView<'_>, texts: &'static Texts) -> Line {
    let known = view.position.people_ahead;
    let known = known.filter(|_| view.position.is_counted);
    view.has_order().then(|| match known {
        None => texts.unknown.into(),
        Some(n) => people(n, texts),
    })
}

fn waiting(view: &WaitingView<'_>, texts: &'static Texts) -> Option<String> {
    let is_known = view.position.people_waiting > 0;
    (is_known && view.has_queue() && !view.has_order())
        .then(|| texts.grammar.count(view.position.people_waiting.into()))
}

/// Returns the admissions of the last minute; `None` unless visitors go in.
fn moved(view: &WaitingView<'_>, texts: &'static Texts) -> Line {
    let known = view.admitted_last_minute.filter(|_| view.is_moving());
    known.map(|n| match n {
        0 => texts.moved_none.into(),
        1 => texts.moved_one.into(),
        n => filled(texts.moved, "{n}", &texts.grammar.count(n.into())).into(),
    })
}

fn wait(view: &WaitingView<'_>, texts: &'static Texts) -> Line {
    match view.position.reason {
        QueueReason::Full | QueueReason::NotYourTurn => Some(match view.wait() {
            Some(wait) => time_words::range(texts, wait).into(),
            None => texts.unknown.into(),
        }),
        // The pause itself does not count: how long it lasts is not known.
        QueueReason::QueueAll if view.is_paused => Some(match view.position.wait {
            Some(wait) => {
                let wait = time_words::range(texts, wait);
                filled(texts.after_pause, "{time}", &wait).into()
            }
            None => texts.unknown_organiser.into(),
        }),
        QueueReason::QueueAll => Some(texts.unknown_organiser.into()),
        QueueReason::StoreUnavailable | QueueReason::OriginDown => Some(texts.unknown_fault.into()),
        QueueReason::NotOpenYet { .. }
        | QueueReason::Recovering { .. }
        | QueueReason::Rejecting => None,
    }
}

/// Returns when the visitor probably goes in; `None` if it takes so long that a time of the day
/// would be unclear.
fn entry(view: &WaitingView<'_>, texts: &'static Texts) -> Line {
    const MINUTE: u64 = 60_000;
    const LONGEST: DurationMs = DurationMs::from_secs(12 * 3_600);
    let wait = view.wait().filter(|wait| wait.high <= LONGEST)?;
    let low = (view.now + wait.low).0 / MINUTE * MINUTE;
    let high = (view.now + wait.high).0.div_ceil(MINUTE) * MINUTE;
    let until = format!("{{{high}}}");
    if high - low <= MINUTE {
        return Some(until.into());
    }
    let text = filled(texts.range, "{from}", &format!("{{{low}-}}"));
    Some(text.replace("{to}", &until).into())
}

fn until(view: &WaitingView<'_>, texts: &'static Texts) -> Option<Until> {
    let (label, at) = match view.position.reason {
        QueueReason::NotOpenYet { opens_at } => (texts.label_opens, opens_at),
        QueueReason::Recovering { reopens_at } => (texts.label_reopens, reopens_at),
        _ => return None,
    };
    Some(Until {
        label,
        moment: Moment::of_day(at)?,
        left: time_words::until(texts, at.since(view.now)),
    })
}

/// Returns the one big number: the time until the opening, the position, or how many wait.
fn number(view: &WaitingView<'_>, texts: &'static Texts, until: Option<&Until>) -> Line {
    if let (QueueReason::NotOpenYet { .. }, Some(until)) = (view.position.reason, until) {
        return Some(until.left.clone().into());
    }
    if view.has_order() {
        let place = view.place().map(|place| texts.grammar.count(place).into());
        let unknown = if view.position.is_counted {
            texts.unknown
        } else {
            texts.counting
        };
        return Some(place.unwrap_or_else(|| unknown.into()));
    }
    waiting(view, texts).map(Cow::from)
}

fn label(
    view: &WaitingView<'_>,
    texts: &'static Texts,
    is_loss: bool,
    is_there: bool,
) -> Option<&'static str> {
    let is_early = opening(view).is_some();
    Some(match () {
        () if !is_there => return None,
        () if is_early => texts.label_opens,
        () if !view.has_order() => texts.label_waiting,
        () if is_loss => texts.label_position_new,
        () => texts.label_position,
    })
}

/// Returns the facts below the number. An unknown wait beside an unknown position says nothing new.
fn facts(view: &WaitingView<'_>, texts: &'static Texts, until: Option<&Until>) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut push = |label, value: Line| {
        facts.extend(value.map(|value| Fact { label, value }));
    };
    let at = |kind: char| until.map(|until| format!("{{{}{kind}}}", until.moment.at().0).into());
    match view.position.reason {
        QueueReason::NotOpenYet { .. } => {
            push(texts.label_opening, at('+'));
            let place = view.place().filter(|_| until.is_some());
            let place = place.map(|place| texts.grammar.count(place).into());
            push(texts.label_position, place);
        }
        QueueReason::Recovering { .. } => push(texts.label_reopens, at('+')),
        _ if view.position.is_counted || !view.has_order() => {
            push(texts.label_wait, wait(view, texts));
            push(texts.label_entry, entry(view, texts));
        }
        _ => {}
    }
    facts
}

const fn rise_text(texts: &'static Texts, rise: Rise) -> &'static str {
    match rise {
        Rise::LimitLowered => texts.rise_limit,
        Rise::Slower => texts.rise_slower,
        Rise::EarlierVisitors => texts.rise_earlier,
    }
}

/// Returns the steps before a draw; empty unless one is to come.
fn steps(view: &WaitingView<'_>, texts: &'static Texts) -> Vec<String> {
    let Some(opens_at) = draw_at(view) else {
        return Vec::new();
    };
    [
        (texts.step_now.to_owned(), texts.step_now_text),
        (format!("{{{}}}:", opens_at.0), texts.step_opening_text),
        (texts.step_after.to_owned(), texts.step_after_text),
    ]
    .map(|(time, text)| format!("{time}|{text}"))
    .into()
}

/// Returns the opening of a draw that is to come.
fn draw_at(view: &WaitingView<'_>) -> Option<Timestamp> {
    let is_draw = view.draw && view.method == QueueingMethod::Fifo;
    let opening = opening(view).filter(|_| is_draw)?;
    Some(opening.at())
}

fn kept(view: &WaitingView<'_>, texts: &'static Texts) -> String {
    let time = time_words::at_least(texts, view.position_grace, Case::Bound);
    filled(texts.kept, "{time}", &time)
}

/// Returns what is kept. Before a draw there is no position to keep: a visitor who is back before
/// the opening takes part.
fn keep(view: &WaitingView<'_>, texts: &'static Texts) -> (Option<&'static str>, Line) {
    if let Some(opens_at) = draw_at(view) {
        let text = filled(texts.close_text, "{at}", &format!("{{{}}}", opens_at.0));
        return (Some(texts.close_title), Some(text.into()));
    }
    if !view.has_queue() {
        return (Some(texts.checks_title), Some(texts.checks.into()));
    }
    if !view.is_near() {
        return (Some(texts.kept_title), Some(kept(view, texts).into()));
    }
    let time = time_words::at_least(texts, view.turn_held_for, Case::Bound);
    let held = filled(texts.near_held, "{time}", &time);
    let near = format!("{} {held}", texts.near);
    (Some(texts.near_title), Some(near.into()))
}

#[cfg(test)]
mod tests;
