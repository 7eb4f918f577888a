//! The facts that a waiting page is made from.

use anteroom_config::language::Language;
use anteroom_config::overrides::RoomOverrides;
use anteroom_room::decision::{QueuePosition, QueueReason, WaitRange};
use anteroom_room::rules::{QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::wire::place::{QueuePositionFacts, WaitingBody, reason_name};

/// Everything that the answer to a waiting visitor is made from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitingView<'a> {
    /// The room's name, for the page and for the address that it asks.
    pub room: &'a str,
    /// Where the visitor stands, and why.
    pub place: QueuePosition,
    /// In which order people go in.
    pub method: QueueingMethod,
    /// Whether the operator holds everybody.
    pub queue_all: bool,
    /// Whether those who came before the opening go in by lot.
    pub draw: bool,
    /// Whether it is a pause that holds everybody.
    pub is_paused: bool,
    /// How long a place is kept after the last ask.
    pub position_grace: DurationMs,
    /// The time of the decision; room clock.
    pub now: Timestamp,
    /// In which language to say it.
    pub language: Language,
    /// How many were admitted during the last minute; `None` before a minute has been watched.
    pub admitted_last_minute: Option<u32>,
    /// What the operator says to everybody who waits; plain text that anybody may have written.
    pub message: Option<&'a str>,
}

impl<'a> WaitingView<'a> {
    /// The view of somebody who was given `place` at `now` under the rules of `room`, in English,
    /// and nothing else known.
    #[must_use]
    pub const fn new(room: &'a str, rules: &Rules, place: QueuePosition, now: Timestamp) -> Self {
        Self {
            room,
            place,
            method: rules.queueing_method,
            queue_all: rules.queue_all,
            draw: rules.draw,
            is_paused: false,
            position_grace: rules.position_grace,
            now,
            language: Language::English,
            admitted_last_minute: None,
            message: None,
        }
    }

    /// The same with what operators said while the room runs.
    #[must_use]
    pub(crate) fn with_overrides(mut self, overrides: &'a RoomOverrides) -> Self {
        self.is_paused = overrides.pause.is_some();
        self.message = overrides.message();
        self
    }

    /// Stable word for why this visitor waits.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        reason_name(self.place.reason, self.is_paused)
    }

    /// What a program gets to read.
    #[must_use]
    pub fn body(&self) -> WaitingBody {
        WaitingBody::from(QueuePositionFacts {
            place: QueuePosition {
                wait: self.wait(),
                ..self.place
            },
            queueing_method: self.method,
            queue_all: self.queue_all,
            draw: self.draw,
            is_paused: self.is_paused,
            message: self.message,
            now: self.now,
        })
    }

    /// The estimate, but only while people are let in: it is made from the recent rate, which says
    /// nothing about how long a standstill lasts.
    pub(crate) const fn wait(&self) -> Option<WaitRange> {
        if self.is_moving() {
            self.place.wait
        } else {
            None
        }
    }

    /// Whether people are let in at all.
    #[must_use]
    pub(crate) const fn is_moving(&self) -> bool {
        matches!(
            self.place.reason,
            QueueReason::Full | QueueReason::NotYourTurn
        )
    }

    /// Whether there is anything to wait in.
    pub(crate) fn has_line(&self) -> bool {
        self.place.reason != QueueReason::Rejecting
    }

    /// Whether those who wait stand in an order at all at this moment.
    pub(crate) fn has_order(&self) -> bool {
        let is_before = matches!(self.place.reason, QueueReason::NotOpenYet { .. });
        self.has_line() && self.method == QueueingMethod::Fifo && !(self.draw && is_before)
    }
}
