//! Words of the page, from the facts of the decision.
//!
//! The page is rendered from these words, and its script replaces them by those of the position
//! endpoint. Layout, escaping and HTTP are not known here.

use std::borrow::Cow;

use anteroom_room::queue_position::QueueReason;
use anteroom_room::rules::QueueingMethod;

use crate::page::grammar::filled;
use crate::page::texts::Texts;
use crate::page::time_words::{self, Case, Moment};
use crate::page::view::WaitingView;

/// Words of the page; `None` hides a line.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Words {
    /// Title of the tab.
    pub(crate) title: String,
    /// Heading of the page.
    pub(crate) heading: &'static str,
    /// Reason of waiting.
    pub(crate) reason: Cow<'static, str>,
    /// Operator's message.
    pub(crate) message: Option<String>,
    /// Rule of the queue.
    pub(crate) order: Option<&'static str>,
    /// Promise that a reload loses nothing, and for how long.
    pub(crate) kept: Option<String>,
    /// Number of people ahead.
    pub(crate) ahead: Option<Cow<'static, str>>,
    /// Number of all waiting visitors; only for a queue without an order.
    pub(crate) waiting: Option<String>,
    /// Admissions during the last minute.
    pub(crate) moved: Option<Cow<'static, str>>,
    /// Estimated wait.
    pub(crate) wait: Option<Cow<'static, str>>,
    /// Event at a fixed time.
    pub(crate) until: Option<Until>,
    /// Arrival of the visitor.
    pub(crate) since: Option<Moment>,
    /// Time of these facts.
    pub(crate) updated: Option<Moment>,
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
    /// Returns the words for these facts, in their language.
    #[must_use]
    pub(crate) fn of(view: &WaitingView<'_>) -> Self {
        let texts = Texts::of(view.language);
        Self {
            title: title(view, texts),
            heading: heading(view, texts),
            reason: reason(view, texts),
            message: view.message.map(str::to_owned),
            order: order(view, texts),
            kept: view.has_queue().then(|| {
                let time = time_words::at_least(texts, view.position_grace, Case::Bound);
                filled(texts.kept, "{time}", &time)
            }),
            ahead: ahead(view, texts),
            waiting: waiting(view, texts),
            moved: moved(view, texts),
            wait: wait(view, texts),
            until: until(view, texts),
            since: Some(view.position.arrived_at)
                .filter(|_| view.has_queue())
                .and_then(Moment::of_clock),
            updated: Moment::of_clock(view.now),
        }
    }
}

/// Returns the title with the number first, because a background tab shows little more.
fn title(view: &WaitingView<'_>, texts: &'static Texts) -> String {
    let heading = heading(view, texts);
    match view.position.people_ahead {
        Some(ahead) if view.has_order() => {
            format!("{} \u{b7} {heading}", texts.grammar.count(ahead.into()))
        }
        _ => heading.to_owned(),
    }
}

fn heading(view: &WaitingView<'_>, texts: &'static Texts) -> &'static str {
    match view.position.reason {
        QueueReason::NotOpenYet { .. } => texts.heading_early,
        QueueReason::Rejecting => texts.heading_rejecting,
        _ if view.method == QueueingMethod::Random => texts.heading_lot,
        _ => texts.heading_line,
    }
}

fn reason(view: &WaitingView<'_>, texts: &'static Texts) -> Cow<'static, str> {
    match view.position.reason {
        QueueReason::Full => texts.full.into(),
        QueueReason::NotYourTurn if view.method == QueueingMethod::Random => texts.lot_moves.into(),
        QueueReason::NotYourTurn => texts.line_moves.into(),
        QueueReason::QueueAll if view.is_paused => texts.paused.into(),
        QueueReason::QueueAll => texts.queue_all.into(),
        QueueReason::NotOpenYet { opens_at } => match Moment::of_day(opens_at) {
            Some(_) => texts.early.into(),
            None => texts.early_unknown.into(),
        },
        QueueReason::Rejecting => texts.rejecting.into(),
        QueueReason::StoreUnavailable => texts.store_away.into(),
        QueueReason::Recovering { reopens_at } => match Moment::of_clock(reopens_at) {
            Some(_) => texts.recovering.into(),
            None => format!("{} {}", texts.recovering, texts.recovering_unknown).into(),
        },
        QueueReason::OriginDown => texts.origin_down.into(),
    }
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

fn ahead(view: &WaitingView<'_>, texts: &'static Texts) -> Option<Cow<'static, str>> {
    view.has_order().then(|| match view.position.people_ahead {
        None => texts.unknown.into(),
        Some(n) => people(n, texts),
    })
}

fn waiting(view: &WaitingView<'_>, texts: &'static Texts) -> Option<String> {
    let is_known = view.position.people_waiting > 0;
    (is_known && view.has_queue() && !view.has_order())
        .then(|| texts.grammar.count(view.position.people_waiting.into()))
}

/// Returns the admissions of the last minute; `None` before the opening and without a queue.
fn moved(view: &WaitingView<'_>, texts: &'static Texts) -> Option<Cow<'static, str>> {
    let is_before = matches!(view.position.reason, QueueReason::NotOpenYet { .. });
    let known = view.admitted_last_minute;
    let known = known.filter(|_| view.has_queue() && !is_before);
    known.map(|n| people(n, texts))
}

fn wait(view: &WaitingView<'_>, texts: &'static Texts) -> Option<Cow<'static, str>> {
    match view.position.reason {
        QueueReason::Full | QueueReason::NotYourTurn => Some(match view.wait() {
            Some(wait) => time_words::range(texts, wait).into(),
            None => texts.unknown.into(),
        }),
        QueueReason::QueueAll => Some(texts.unknown_organiser.into()),
        QueueReason::StoreUnavailable | QueueReason::OriginDown => Some(texts.unknown_fault.into()),
        QueueReason::NotOpenYet { .. }
        | QueueReason::Recovering { .. }
        | QueueReason::Rejecting => None,
    }
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

#[cfg(test)]
mod tests;
