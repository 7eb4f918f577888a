//! Words of a turn that is held for a visitor.

use anteroom_room::time::DurationMs;

use crate::page::grammar::filled;
use crate::page::texts::Texts;
use crate::page::time_words::{self, Case};
use crate::page::view::TurnView;

/// Words of a turn. The page chooses among them: it may be visible or in the background, and the
/// visitor may ask it to wait.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnWords {
    /// Tags and headings, of a turn and of one that is held.
    pub(crate) tag: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) held_tag: &'static str,
    pub(crate) held_heading: &'static str,
    /// Reason why the page did not enter: it was in the background, or the visitor asked for it.
    pub(crate) away: &'static str,
    pub(crate) asked: &'static str,
    /// Labels of the number: seconds until the page enters, time left to enter.
    pub(crate) turn_in: &'static str,
    pub(crate) within: &'static str,
    /// Buttons.
    pub(crate) enter: &'static str,
    pub(crate) not_yet: String,
    pub(crate) extend: &'static str,
    /// Sentences below them, of a turn and of one that is held.
    pub(crate) inside: Option<String>,
    pub(crate) next: &'static str,
    /// Reminder of a form that was not sent.
    pub(crate) send: &'static str,
    /// Announcements at 20 and 10 seconds.
    pub(crate) left20: String,
    pub(crate) left10: String,
}

impl TurnWords {
    /// Returns the words of a turn.
    #[must_use]
    pub(crate) fn of(view: &TurnView) -> Self {
        let texts = Texts::of(view.language);
        let time = |text: &str, span| {
            let time = time_words::at_least(texts, span, Case::Alone);
            filled(text, "{time}", &time)
        };
        Self {
            tag: texts.tag_turn,
            heading: texts.heading_turn,
            held_tag: texts.tag_held,
            held_heading: texts.heading_held,
            away: texts.held_away,
            asked: texts.held_asked,
            turn_in: texts.turn_in,
            within: texts.label_within,
            enter: texts.enter,
            not_yet: time(texts.not_yet, view.turn.ends_at.since(view.now)),
            extend: texts.extend,
            inside: view
                .is_renewed
                .then(|| time(texts.turn_inside, view.session_duration)),
            next: texts.turn_next,
            send: texts.turn_send,
            left20: time(texts.time_left, DurationMs::from_secs(20)),
            left10: time(texts.time_left, DurationMs::from_secs(10)),
        }
    }
}
