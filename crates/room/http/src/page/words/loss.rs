//! Notice about what a visitor had and lost. The page shows it until it is left.

use anteroom_room::queue_position::Loss;
use anteroom_room::time::Timestamp;

use super::noun;
use super::state::{Kind, Tag};
use crate::page::grammar::filled;
use crate::page::texts::Texts;
use crate::page::time_words::{self, Case};
use crate::page::view::WaitingView;

/// Words that replace those of the state.
pub(super) struct LossWords {
    pub(super) tag: Tag,
    pub(super) heading: &'static str,
    pub(super) why: String,
}

pub(super) fn words(view: &WaitingView<'_>, texts: &'static Texts, loss: Loss) -> LossWords {
    let at =
        |text: &str, name: &str, time: Timestamp| filled(text, name, &format!("{{{}}}", time.0));
    let (tag, heading, why) = match loss {
        // A sentence stands only where it is true: the seat may be free, or nobody can go in.
        Loss::Session { was_idle, .. } if !was_idle || !view.is_moving() => (
            texts.tag_session,
            texts.heading_session,
            texts.loss_end.to_owned(),
        ),
        Loss::Session { ended_at, .. } => {
            let time = time_words::at_least(texts, view.session_duration, Case::Bound);
            let text = filled(&noun(view, texts.loss_session), "{time}", &time);
            let why = format!("{} {}", at(&text, "{at}", ended_at), texts.loss_end);
            (texts.tag_session, texts.heading_session, why)
        }
        Loss::Position {
            last_request_at,
            ended_at,
        } => {
            let time = time_words::at_least(texts, view.position_grace, Case::Bound);
            let text = filled(texts.loss_position, "{time}", &time);
            let text = at(&at(&text, "{last}", last_request_at), "{at}", ended_at);
            let why = format!("{text} {}", texts.loss_end);
            (texts.tag_position, texts.heading_away, why)
        }
        Loss::Turn {
            ended_at,
            is_near_front,
        } => {
            let next = if is_near_front {
                texts.loss_turn_near
            } else {
                texts.loss_end
            };
            let why = format!("{} {next}", at(texts.loss_turn, "{at}", ended_at));
            (texts.tag_missed, texts.heading_missed, why)
        }
        Loss::Revoked => (
            texts.tag_revoked,
            texts.heading_revoked,
            texts.loss_revoked.to_owned(),
        ),
    };
    LossWords {
        tag: Tag {
            tag,
            kind: Kind::Stop,
        },
        heading,
        why,
    }
}
