//! Sample of a waiting visitor, for tests of pages and responses.

use anteroom_room::queue_position::{QueuePosition, QueueReason, WaitRange};
use anteroom_room::rules::{QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::page::html::Links;
use crate::page::view::WaitingView;
use crate::waiting::PATHS;

/// Opening time: Saturday, 1 August 2026, 10:00 UTC.
pub(crate) const OPENING: Timestamp = Timestamp(1_785_578_400_000);

/// Reasons of waiting, all of them.
pub(crate) const REASONS: [QueueReason; 8] = [
    QueueReason::Full,
    QueueReason::NotYourTurn,
    QueueReason::QueueAll,
    QueueReason::NotOpenYet { opens_at: OPENING },
    QueueReason::Rejecting,
    QueueReason::StoreUnavailable,
    QueueReason::Recovering {
        reopens_at: OPENING,
    },
    QueueReason::OriginDown,
];

/// Addresses of the sample's page.
pub(crate) const LINKS: Links<'static> = Links {
    paths: &PATHS,
    query: "room=shop&lang=en&back=%2Flamps%3Fcolour%3Dred",
    back: "/lamps?colour=red",
    entry: "",
};

/// Returns a visitor in the middle of a queue of 1,204, a good 18 minutes before [`OPENING`].
#[must_use]
pub(crate) fn view(reason: QueueReason) -> WaitingView<'static> {
    let now = OPENING - DurationMs::from_secs(18 * 60 + 12);
    let is_rejected = reason == QueueReason::Rejecting;
    let position = QueuePosition {
        people_ahead: Some(412),
        people_waiting: 1_204,
        wait: Some(WaitRange {
            low: DurationMs::from_secs(10 * 60),
            middle: DurationMs::from_secs(14 * 60),
            high: DurationMs::from_secs(20 * 60),
        }),
        refresh_after: (!is_rejected).then_some(DurationMs(12_300)),
        ..QueuePosition::unknown(reason, now - DurationMs::from_secs(95))
    };
    let rules = Rules {
        queueing_method: if is_rejected {
            QueueingMethod::Reject
        } else {
            QueueingMethod::Fifo
        },
        queue_all: reason == QueueReason::QueueAll,
        ..Rules::default()
    };
    WaitingView {
        admitted_last_minute: Some(38),
        ..WaitingView::new("shop", &rules, position, now)
    }
}
