//! Facts for the response to a waiting visitor.

use anteroom_config::PageConfig;
use anteroom_config::language::Language;
use anteroom_config::overrides::RoomOverrides;
use anteroom_room::queue_position::{HeldTurn, QueuePosition, QueueReason, WaitRange};
use anteroom_room::rules::{QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::visitor_code::VisitorCode;
use anteroom_store::wire::waiting_status::{
    ActiveEvent, QueuePositionFacts, WaitingBody, reason_name,
};

/// Facts from which the response to a waiting visitor is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitingView<'a> {
    /// Name of the room, for the page and for the address that it polls.
    pub room: &'a str,
    /// Position in the queue, and the reason of waiting.
    pub position: QueuePosition,
    /// Queueing method: the order of admissions.
    pub method: QueueingMethod,
    /// Whether the operator queues all visitors.
    pub queue_all: bool,
    /// Whether visitors from before the opening get a random order.
    pub draw: bool,
    /// Whether all visitors are queued because the room is paused.
    pub is_paused: bool,
    /// Time for which a position is kept after the last request.
    pub position_grace: DurationMs,
    /// Time of the decision, in room time.
    pub now: Timestamp,
    /// Language of the response.
    pub language: Language,
    /// Admissions during the last minute; `None` before a minute has been observed.
    pub admitted_last_minute: Option<u32>,
    /// Operator's message to all waiting visitors: plain text, not trusted.
    pub message: Option<&'a str>,
    /// Time at which the operator set the message, if it is known.
    pub message_at: Option<Timestamp>,
    /// Length of a session after the last request.
    pub session_duration: DurationMs,
    /// Whether each request extends a session.
    pub is_renewed: bool,
    /// Time for which a turn is held.
    pub turn_held_for: DurationMs,
    /// Host of the site, the heading of a page without a title.
    pub host: &'a str,
    /// Code of the visitor: the reference for help.
    pub reference: Option<VisitorCode>,
    /// Settings of the page: title, noun, facts and so on.
    pub page: Option<&'a PageConfig>,
    /// The active event of the room.
    pub event: Option<ActiveEvent>,
}

/// Turn of a visitor who is admitted and has not entered yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TurnView {
    /// Turn.
    pub turn: HeldTurn,
    /// Time of the decision, in room time.
    pub now: Timestamp,
    /// Language of the page.
    pub language: Language,
    /// Length of a session after the last request.
    pub session_duration: DurationMs,
    /// Whether each request extends a session.
    pub is_renewed: bool,
}

/// Poll interval where the room itself wants no further request. The page promises it.
const REFRESH_WITHOUT_QUEUE: DurationMs = DurationMs::from_secs(30);

/// Most people ahead for "Almost there", and the longest wait for it. Both must hold, because a
/// short queue in front of a slow room is not short.
const NEAR_AHEAD: u32 = 10;
const NEAR_WAIT: DurationMs = DurationMs::from_secs(120);

impl<'a> WaitingView<'a> {
    /// Returns the facts about a visitor at `position` at the time `now`, in English and without
    /// optional ones.
    #[must_use]
    pub const fn new(
        room: &'a str,
        rules: &Rules,
        position: QueuePosition,
        now: Timestamp,
    ) -> Self {
        Self {
            room,
            position,
            method: rules.queueing_method,
            queue_all: rules.queue_all,
            draw: rules.draw,
            is_paused: false,
            position_grace: rules.position_grace,
            now,
            language: Language::English,
            admitted_last_minute: None,
            message: None,
            message_at: None,
            session_duration: rules.session_duration,
            is_renewed: rules.session_renewal,
            turn_held_for: rules.turn_held_for,
            host: "",
            reference: None,
            page: None,
            event: None,
        }
    }

    /// Adds the overrides of operators.
    #[must_use]
    pub(crate) fn with_overrides(mut self, overrides: &'a RoomOverrides) -> Self {
        self.is_paused = overrides.pause.is_some();
        self.message = overrides.message();
        self.message_at = overrides.message_at();
        self
    }

    /// Returns the stable word for the reason of waiting.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        reason_name(self.position.reason, self.is_paused)
    }

    /// Returns the JSON body for programs.
    #[must_use]
    pub fn body(&self) -> WaitingBody {
        WaitingBody::from(QueuePositionFacts {
            position: QueuePosition {
                wait: self.wait(),
                ..self.position
            },
            queueing_method: self.method,
            queue_all: self.queue_all,
            draw: self.draw,
            is_paused: self.is_paused,
            message: self.message(),
            event: self.event,
            now: self.now,
        })
    }

    /// Returns the estimated wait, but only while the room admits visitors. It follows from the
    /// recent rate, which does not tell how long a standstill lasts.
    pub(crate) const fn wait(&self) -> Option<WaitRange> {
        if self.is_moving() {
            self.position.wait
        } else {
            None
        }
    }

    /// Whether the room admits visitors at present.
    #[must_use]
    pub(crate) const fn is_moving(&self) -> bool {
        matches!(
            self.position.reason,
            QueueReason::Full | QueueReason::NotYourTurn
        )
    }

    /// Returns the time until the next request: a room without a queue is asked again too.
    #[must_use]
    pub(crate) fn refresh_after(&self) -> DurationMs {
        self.position.refresh_after.unwrap_or(REFRESH_WITHOUT_QUEUE)
    }

    /// Returns the position, 1 = next; `None` if there is none, or it is not counted yet.
    pub(crate) fn place(&self) -> Option<u64> {
        let ahead = self.position.people_ahead.filter(|_| self.has_order())?;
        self.position.is_counted.then(|| u64::from(ahead) + 1)
    }

    /// Whether it is the visitor's turn soon.
    pub(crate) fn is_near(&self) -> bool {
        let is_short = self.wait().is_some_and(|wait| wait.high <= NEAR_WAIT);
        is_short && self.place().is_some_and(|place| place <= NEAR_AHEAD.into())
    }

    /// Returns the operator's message: that of the moment, or the one in the configuration.
    pub(crate) fn message(&self) -> Option<&'a str> {
        self.message
            .or_else(|| self.page?.messages.of(self.language))
    }

    /// Returns the name of the site, for the header and the title of the tab.
    pub(crate) fn brand(&self) -> &'a str {
        let title = self.page.and_then(|page| page.title.as_deref());
        title.unwrap_or(if self.host.is_empty() {
            self.room
        } else {
            self.host
        })
    }

    /// Whether the operator has closed the room: it rejects everybody, and a message says why. That
    /// may be the end of the sale, so the page claims neither that the room is full nor more.
    pub(crate) fn is_closed(&self) -> bool {
        !self.has_queue() && self.message.is_some()
    }

    /// Whether there is a queue.
    pub(crate) fn has_queue(&self) -> bool {
        self.position.reason != QueueReason::Rejecting
    }

    /// Whether waiting visitors have an order at present.
    pub(crate) fn has_order(&self) -> bool {
        let is_before = matches!(self.position.reason, QueueReason::NotOpenYet { .. });
        self.has_queue() && self.method == QueueingMethod::Fifo && !(self.draw && is_before)
    }
}
