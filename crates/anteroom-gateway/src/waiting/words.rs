//! What is somebody told who waits? The sentences of the page, from the facts of the decision.
//!
//! One place for all wording: the page is rendered from these words, and the script in it puts in
//! the words that the place endpoint sends. Layout, escaping and HTTP are not known here. English
//! only for now.

use std::borrow::Cow;

use anteroom_core::decision::QueueReason;
use anteroom_core::rules::QueueingMethod;

use super::WaitingView;
use super::english::{self, Moment};

const NOT_KNOWN_YET: &str = "Not known yet";

/// What the page says; `None` = that line is not there.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Words {
    /// What this is, in a few words.
    pub(super) heading: &'static str,
    /// Why this visitor waits.
    pub(super) reason: Cow<'static, str>,
    /// What the operator says.
    pub(super) message: Option<String>,
    /// The rule of the line.
    pub(super) order: Option<&'static str>,
    /// That nothing is lost by reloading, and for how long.
    pub(super) kept: Option<String>,
    /// People ahead.
    pub(super) ahead: Option<Cow<'static, str>>,
    /// People who wait in all; only where there is no order to stand in.
    pub(super) waiting: Option<String>,
    /// Estimated wait.
    pub(super) wait: Option<Cow<'static, str>>,
    /// What happens at a fixed time.
    pub(super) until: Option<Until>,
    /// Since when this visitor waits.
    pub(super) since: Option<Moment>,
    /// When all this was true.
    pub(super) updated: Option<Moment>,
}

/// What happens at a fixed time; kept apart from the estimated wait.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Until {
    /// What happens then.
    pub(super) label: &'static str,
    /// When.
    pub(super) moment: Moment,
    /// How long until then.
    pub(super) left: String,
}

impl Words {
    pub(super) fn of(view: &WaitingView<'_>) -> Self {
        let has_line = view.place.reason != QueueReason::Rejecting;
        Self {
            heading: heading(view),
            reason: reason(view),
            message: view.message.map(str::to_owned),
            order: order(view),
            kept: has_line.then(|| kept(view)),
            ahead: ahead(view),
            waiting: waiting(view),
            wait: wait(view),
            until: until(view),
            since: if has_line {
                Moment::of_clock(view.place.arrived_at)
            } else {
                None
            },
            updated: Moment::of_clock(view.now),
        }
    }
}

fn heading(view: &WaitingView<'_>) -> &'static str {
    match view.place.reason {
        QueueReason::NotOpenYet { .. } => "Not open yet",
        QueueReason::Rejecting => "Not available right now",
        _ if view.method == QueueingMethod::Random => "You are in the waiting room",
        _ => "You are in line",
    }
}

fn reason(view: &WaitingView<'_>) -> Cow<'static, str> {
    let text = match view.place.reason {
        QueueReason::Full => {
            "As many visitors are inside right now as this site can serve well. \
             You go in as soon as there is room for you."
        }
        QueueReason::NotYourTurn if view.method == QueueingMethod::Random => {
            "People are being let in right now, and this time others were drawn. \
             The next draw is a new chance."
        }
        QueueReason::NotYourTurn => {
            "People are being let in right now, one after the other. \
             You go in as soon as it is your turn."
        }
        QueueReason::QueueAll if view.is_paused => {
            "The organiser has paused the entry for the moment. Nobody goes in until it is \
             resumed, and nobody loses a place by it."
        }
        QueueReason::QueueAll => {
            "The organiser is keeping everybody here for the moment and will let people in later."
        }
        QueueReason::NotOpenYet { opens_at } => return not_open_yet(opens_at),
        QueueReason::Rejecting => {
            "This site is not taking any new visitors at the moment, and there is no line \
             to wait in. Please come back later."
        }
        QueueReason::StoreAway => {
            "A part of this waiting room is not reachable. Until it is back nobody is let in, \
             so that the site is not overfilled."
        }
        QueueReason::Recovering { reopens_at } => return recovering(reopens_at),
        QueueReason::OriginDown => {
            "The site behind this waiting room is not answering properly. \
             Nobody is let in until it does: you would only see an error."
        }
    };
    text.into()
}

fn not_open_yet(opens_at: anteroom_core::time::Millis) -> Cow<'static, str> {
    match Moment::of_day(opens_at) {
        Some(_) => "This opens at the time below. You are early, and you do not have to do \
                    anything until then."
            .into(),
        None => "No time for the opening has been set yet.".into(),
    }
}

fn recovering(reopens_at: anteroom_core::time::Millis) -> Cow<'static, str> {
    let text = "After a fault, everybody who is inside is being counted anew. Until that is done \
                nobody new is let in, so that the site is not overfilled.";
    match Moment::of_clock(reopens_at) {
        Some(_) => text.into(),
        None => format!("{text} How long that takes is not known yet.").into(),
    }
}

/// The rule of the line in plain words. Where nobody is let in by any rule, it says nothing.
fn order(view: &WaitingView<'_>) -> Option<&'static str> {
    let is_before = matches!(view.place.reason, QueueReason::NotOpenYet { .. });
    match view.method {
        _ if view.place.reason == QueueReason::Rejecting => None,
        QueueingMethod::Fifo if view.draw && is_before => Some(
            "Everybody who is here before the opening takes part in one draw for the order, \
             so coming earlier is no advantage. Those who come later stand behind.",
        ),
        QueueingMethod::Fifo if view.draw => Some(
            "The order of those who were here before the opening was drawn by lot. \
             Those who came later stand behind, in the order in which they came.",
        ),
        QueueingMethod::Fifo => Some("Whoever came first goes in first."),
        QueueingMethod::Random => Some(
            "There is no fixed order: whenever there is room, it is drawn by lot who is let in \
             next. Reloading neither helps nor harms.",
        ),
        QueueingMethod::Passthrough | QueueingMethod::Reject => None,
    }
}

fn kept(view: &WaitingView<'_>) -> String {
    let grace = english::at_least(view.place_grace);
    format!(
        "Your place is kept. You can reload this page, or close it and come back within {grace}, \
         and lose nothing. It is remembered by a cookie, so please use the same browser."
    )
}

/// Whether those who wait stand in an order at all at this moment.
fn has_order(view: &WaitingView<'_>) -> bool {
    let is_before = matches!(view.place.reason, QueueReason::NotOpenYet { .. });
    view.place.reason != QueueReason::Rejecting
        && view.method == QueueingMethod::Fifo
        && !(view.draw && is_before)
}

fn ahead(view: &WaitingView<'_>) -> Option<Cow<'static, str>> {
    has_order(view).then(|| match view.place.people_ahead {
        None => NOT_KNOWN_YET.into(),
        Some(0) => "Nobody".into(),
        Some(n) => english::count(n).into(),
    })
}

fn waiting(view: &WaitingView<'_>) -> Option<String> {
    let is_known = view.place.people_waiting > 0;
    let has_line = view.place.reason != QueueReason::Rejecting;
    (is_known && has_line && !has_order(view)).then(|| english::count(view.place.people_waiting))
}

fn wait(view: &WaitingView<'_>) -> Option<Cow<'static, str>> {
    match view.place.reason {
        QueueReason::Full | QueueReason::NotYourTurn => Some(match view.wait() {
            Some(wait) => {
                let mut text = english::range(wait);
                if let Some(first) = text.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                text.into()
            }
            None => NOT_KNOWN_YET.into(),
        }),
        QueueReason::QueueAll => Some("Not known: the organiser decides".into()),
        QueueReason::StoreAway | QueueReason::OriginDown => {
            Some("Not known until this is mended".into())
        }
        QueueReason::NotOpenYet { .. }
        | QueueReason::Recovering { .. }
        | QueueReason::Rejecting => None,
    }
}

fn until(view: &WaitingView<'_>) -> Option<Until> {
    let (label, at) = match view.place.reason {
        QueueReason::NotOpenYet { opens_at } => ("Opens", opens_at),
        QueueReason::Recovering { reopens_at } => {
            ("People are expected to go in again", reopens_at)
        }
        _ => return None,
    };
    Some(Until {
        label,
        moment: Moment::of_day(at)?,
        left: format!("in {}", english::until(at.since(view.now))),
    })
}

#[cfg(test)]
mod tests {
    use anteroom_core::decision::WaitRange;
    use anteroom_core::time::{Millis, Span};

    use super::super::samples;
    use super::*;

    #[test]
    fn no_two_reasons_are_explained_alike() {
        let mut seen = std::collections::BTreeSet::new();
        for reason in samples::REASONS {
            let words = Words::of(&samples::view(reason));
            assert!(words.reason.len() > 60, "{reason:?} is hardly explained");
            assert!(
                seen.insert(words.reason),
                "{reason:?} says what another says"
            );
        }
    }

    #[test]
    fn an_unknown_number_is_called_unknown_and_never_zero() {
        let mut view = samples::view(QueueReason::Full);
        view.place.people_ahead = None;
        view.place.wait = None;
        let words = Words::of(&view);
        assert_eq!(words.ahead.as_deref(), Some("Not known yet"));
        assert_eq!(words.wait.as_deref(), Some("Not known yet"));
    }

    #[test]
    fn an_estimate_is_a_range_that_starts_like_a_sentence() {
        let mut view = samples::view(QueueReason::NotYourTurn);
        view.place.wait = Some(WaitRange {
            low: Span::from_secs(20),
            middle: Span::from_secs(60),
            high: Span::from_secs(300),
        });
        assert_eq!(Words::of(&view).wait.as_deref(), Some("Up to 5 minutes"));
    }

    #[test]
    fn no_estimate_is_given_while_nobody_is_let_in() {
        for reason in samples::REASONS {
            if matches!(reason, QueueReason::Full | QueueReason::NotYourTurn) {
                continue;
            }
            let view = samples::view(reason);
            assert!(view.place.wait.is_some(), "the sample has an estimate");
            let wait = Words::of(&view).wait;
            let is_honest = wait.as_deref().is_none_or(|w| w.starts_with("Not known"));
            assert!(is_honest, "{reason:?}: {wait:?}");
        }
    }

    #[test]
    fn somebody_who_is_turned_away_is_promised_no_place() {
        let words = Words::of(&samples::view(QueueReason::Rejecting));
        assert_eq!((words.kept, words.order), (None, None));
        assert_eq!(
            (words.ahead, words.waiting, words.since),
            (None, None, None)
        );
    }

    #[test]
    fn where_lots_are_drawn_nobody_is_told_a_position() {
        let mut by_lot = samples::view(QueueReason::NotYourTurn);
        by_lot.method = QueueingMethod::Random;
        let mut draw = samples::view(QueueReason::NotOpenYet {
            opens_at: samples::OPENING,
        });
        draw.draw = true;
        for view in [by_lot, draw] {
            let words = Words::of(&view);
            assert_eq!(words.ahead, None);
            assert_eq!(words.waiting.as_deref(), Some("1,204"));
        }
    }

    #[test]
    fn the_countdown_stands_apart_from_the_estimate() {
        let words = Words::of(&samples::view(QueueReason::NotOpenYet {
            opens_at: samples::OPENING,
        }));
        let until = words.until.unwrap();
        assert_eq!(until.moment.text, "Saturday, 1 August 2026, 10:00 UTC");
        assert_eq!(until.left, "in 19 minutes");
        assert_eq!(words.wait, None);
    }

    #[test]
    fn a_time_that_never_comes_is_not_printed() {
        let never = Millis::NEVER;
        for reason in [
            QueueReason::NotOpenYet { opens_at: never },
            QueueReason::Recovering { reopens_at: never },
        ] {
            let words = Words::of(&samples::view(reason));
            assert_eq!(words.until, None);
            assert!(words.reason.contains("yet"), "{}", words.reason);
        }
    }
}
