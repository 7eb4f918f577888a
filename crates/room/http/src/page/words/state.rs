//! State of the page: its tag and its heading.

use anteroom_room::queue_position::QueueReason;
use anteroom_room::rules::QueueingMethod;

use crate::page::texts::Texts;
use crate::page::view::WaitingView;

/// Look of a state: symbol and colour. The names are classes of the style.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Visitors go in.
    Go,
    /// Trouble.
    Hold,
    /// A pause: nobody goes in for now.
    Pause,
    /// The end of something.
    Stop,
    /// A time before the beginning.
    Calm,
}

impl Kind {
    /// Returns the class of the style.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Hold => "hold",
            Self::Pause => "pause",
            Self::Stop => "stop",
            Self::Calm => "calm",
        }
    }
}

/// Name of a state in one to three words, and its look.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Serialize)]
pub(crate) struct Tag {
    pub(crate) tag: &'static str,
    pub(crate) kind: Kind,
}

pub(super) fn tag(view: &WaitingView<'_>, texts: &'static Texts) -> Tag {
    let (tag, kind) = match view.position.reason {
        QueueReason::Full | QueueReason::NotYourTurn => (texts.tag_moving, Kind::Go),
        QueueReason::QueueAll if view.is_paused => (texts.tag_paused, Kind::Pause),
        QueueReason::QueueAll => (texts.tag_waiting, Kind::Calm),
        QueueReason::NotOpenYet { .. } => (texts.tag_early, Kind::Calm),
        QueueReason::Rejecting if view.is_closed() => (texts.tag_closed, Kind::Stop),
        QueueReason::Rejecting => (texts.tag_full, Kind::Stop),
        QueueReason::OriginDown => (texts.tag_origin, Kind::Hold),
        QueueReason::StoreUnavailable | QueueReason::Recovering { .. } => {
            (texts.tag_store, Kind::Hold)
        }
    };
    Tag { tag, kind }
}

pub(super) fn heading(view: &WaitingView<'_>, texts: &'static Texts) -> &'static str {
    match view.position.reason {
        QueueReason::NotOpenYet { .. } => texts.heading_early,
        QueueReason::Rejecting if view.is_closed() => texts.heading_closed,
        QueueReason::Rejecting => texts.heading_rejecting,
        QueueReason::QueueAll if view.is_paused => texts.heading_paused,
        QueueReason::OriginDown
        | QueueReason::StoreUnavailable
        | QueueReason::Recovering { .. }
            if view.has_order() =>
        {
            texts.heading_safe
        }
        _ if view.is_near() => texts.heading_near,
        _ if view.method == QueueingMethod::Random => texts.heading_lot,
        _ => texts.heading_line,
    }
}
