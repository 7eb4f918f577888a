//! JSON body for a waiting program: the `cfWaitingRoom` object that clients of hosted waiting rooms
//! know, with all its fields and four of our own.
//!
//! The gateway decides when to send it, and with which status and headers.

use std::borrow::Cow;

use anteroom_room::queue_position::{QueuePosition, QueueReason, WaitRange};
use anteroom_room::rules::QueueingMethod;
use anteroom_room::time::Timestamp;
use serde::{Deserialize, Serialize};

use anteroom_config::time_text::{minutes, minutes_in_words, rfc3339_millis};
use anteroom_config::words;

/// Value of a text field that has no value.
const UNAVAILABLE: &str = "unavailable";

/// Returns the stable word for the reason of waiting: [`QueueReason::name`], or `paused` if an
/// operator paused the room.
#[must_use]
pub const fn reason_name(reason: QueueReason, is_paused: bool) -> &'static str {
    match reason {
        QueueReason::QueueAll if is_paused => "paused",
        reason => reason.name(),
    }
}

/// Facts about a waiting visitor and the room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueuePositionFacts<'a> {
    /// Position in the queue, and the reason of waiting.
    pub position: QueuePosition,
    /// Queueing method of the room.
    pub queueing_method: QueueingMethod,
    /// Whether the operator queues all visitors.
    pub queue_all: bool,
    /// Whether those who wait for the opening get a random order.
    pub draw: bool,
    /// Whether all visitors are queued because the room is paused.
    pub is_paused: bool,
    /// Operator's message to waiting visitors.
    pub message: Option<&'a str>,
    /// The active event.
    pub event: Option<ActiveEvent>,
    /// Present room time.
    pub now: Timestamp,
}

/// Event that a waiting visitor reads about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ActiveEvent {
    /// End; `None` if it has none.
    pub ends_at: Option<Timestamp>,
    /// Whether those who come in the prequeue enter in random order.
    pub is_shuffled: bool,
}

/// Body of the response.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct WaitingBody {
    /// Single member of the body.
    #[serde(rename = "cfWaitingRoom")]
    pub cf_waiting_room: CfWaitingRoom,
}

/// Object `cfWaitingRoom`. Unknown numbers are 0 and unknown texts `unavailable`, as clients
/// expect; only our own fields can be `null`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CfWaitingRoom {
    /// Constant `true`: other visitors get the origin's response.
    pub in_waiting_room: bool,
    /// Whether there is an estimate.
    pub wait_time_known: bool,
    /// Whole minutes, rounded up, at least 1 if known; the middle of the estimate.
    pub wait_time: u64,
    /// Minutes within which a quarter is admitted; only for `random`.
    #[serde(rename = "waitTime25Percentile")]
    pub wait_time_25_percentile: u64,
    /// Minutes within which half are admitted; only for `random`.
    #[serde(rename = "waitTime50Percentile")]
    pub wait_time_50_percentile: u64,
    /// Minutes within which three quarters are admitted; only for `random`.
    #[serde(rename = "waitTime75Percentile")]
    pub wait_time_75_percentile: u64,
    /// Estimate in English; a range for `random`.
    pub wait_time_formatted: Cow<'static, str>,
    /// Constant `false`: a queue has no limit of length.
    pub queue_is_full: bool,
    /// Whether the operator queues all visitors.
    pub queue_all: bool,
    /// Time of the response: RFC 3339 with milliseconds, UTC.
    pub last_updated: String,
    /// Seconds until the next request; 0 = another request is of no use.
    pub refresh_interval_seconds: u64,
    /// `fifo`, `random`, `passthrough` or `reject`.
    pub queueing_method: Cow<'static, str>,
    /// Whether the method is `fifo`.
    #[serde(rename = "isFIFOQueue")]
    pub is_fifo_queue: bool,
    /// Whether the method is `random`.
    pub is_random_queue: bool,
    /// Whether the method is `passthrough`.
    pub is_passthrough_queue: bool,
    /// Whether the method is `reject`.
    pub is_reject_queue: bool,
    /// Whether an event is active, or the room has not opened yet. An opening has no end, so it is
    /// `false` afterwards.
    pub is_event_active: bool,
    /// Whether the visitor waits for the start of an event, or for the opening.
    pub is_event_prequeueing: bool,
    /// Whole minutes, rounded up, at least 1 while the room has not opened.
    pub time_until_event_start: u64,
    /// [`time_until_event_start`](Self::time_until_event_start) in English.
    pub time_until_event_start_formatted: Cow<'static, str>,
    /// Whole minutes, rounded up, at least 1; 0 without an active event, or if it has no end.
    pub time_until_event_end: u64,
    /// [`time_until_event_end`](Self::time_until_event_end) in English.
    pub time_until_event_end_formatted: Cow<'static, str>,
    /// Whether those who wait for the start or the opening get a random order.
    pub shuffle_at_event_start: bool,
    /// Constant empty text: there is no such challenge here.
    pub turnstile: Cow<'static, str>,
    /// Constant `false`: a visitor who cannot be admitted gets a rejection instead.
    pub infinite_queue: bool,
    /// Ours: position in the queue, 1 = next; `null` if there is no order, or none yet.
    pub position: Option<u64>,
    /// Ours: `position` less one.
    pub people_ahead: Option<u32>,
    /// Ours: reason of waiting; see [`reason_name`].
    pub reason: Cow<'static, str>,
    /// Ours: operator's message; `null` if there is none.
    #[serde(default)]
    pub message: Option<String>,
}

impl From<QueuePositionFacts<'_>> for WaitingBody {
    fn from(facts: QueuePositionFacts<'_>) -> Self {
        Self {
            cf_waiting_room: facts.into(),
        }
    }
}

impl From<QueuePositionFacts<'_>> for CfWaitingRoom {
    fn from(facts: QueuePositionFacts<'_>) -> Self {
        let QueuePositionFacts {
            position,
            now,
            event,
            ..
        } = facts;
        let method = facts.queueing_method;
        let wait = WaitTexts::new(position.wait, method);
        let until_start = match position.reason {
            QueueReason::NotOpenYet { opens_at } => Some(minutes(opens_at.since(now))),
            _ => None,
        };
        let ends_at = event.and_then(|event| event.ends_at);
        let until_end = ends_at.map(|at| minutes(at.since(now)));
        let in_words = |span: Option<u64>| match span {
            Some(span) => Cow::Owned(minutes_in_words(span)),
            None => Cow::Borrowed(UNAVAILABLE),
        };
        Self {
            in_waiting_room: true,
            wait_time_known: position.wait.is_some(),
            wait_time: wait.middle,
            wait_time_25_percentile: wait.percentiles[0],
            wait_time_50_percentile: wait.percentiles[1],
            wait_time_75_percentile: wait.percentiles[2],
            wait_time_formatted: wait.formatted,
            queue_is_full: false,
            queue_all: facts.queue_all,
            last_updated: rfc3339_millis(now),
            // 0 says that another request is of no use.
            refresh_interval_seconds: position
                .refresh_after
                .map_or(0, |after| after.secs_ceil().max(1)),
            queueing_method: words::queueing_method(method).into(),
            is_fifo_queue: method == QueueingMethod::Fifo,
            is_random_queue: method == QueueingMethod::Random,
            is_passthrough_queue: method == QueueingMethod::Passthrough,
            is_reject_queue: method == QueueingMethod::Reject,
            is_event_active: until_start.is_some() || event.is_some(),
            is_event_prequeueing: until_start.is_some(),
            time_until_event_start: until_start.unwrap_or(0),
            time_until_event_start_formatted: in_words(until_start),
            time_until_event_end: until_end.unwrap_or(0),
            time_until_event_end_formatted: in_words(until_end),
            shuffle_at_event_start: match event {
                Some(event) => event.is_shuffled,
                None => until_start.is_some() && facts.draw,
            },
            turnstile: "".into(),
            infinite_queue: false,
            position: position.people_ahead.map(|ahead| u64::from(ahead) + 1),
            people_ahead: position.people_ahead,
            reason: reason_name(position.reason, facts.is_paused).into(),
            message: facts.message.map(str::to_owned),
        }
    }
}

/// Estimate of the wait, in minutes and words.
struct WaitTexts {
    middle: u64,
    percentiles: [u64; 3],
    formatted: Cow<'static, str>,
}

impl WaitTexts {
    fn new(wait: Option<WaitRange>, method: QueueingMethod) -> Self {
        let Some(wait) = wait else {
            return Self {
                middle: 0,
                percentiles: [0; 3],
                formatted: UNAVAILABLE.into(),
            };
        };
        let [low, middle, high] = [wait.low, wait.middle, wait.high].map(minutes);
        if method != QueueingMethod::Random {
            return Self {
                middle,
                percentiles: [0; 3],
                formatted: minutes_in_words(middle).into(),
            };
        }
        let formatted = if low == high {
            minutes_in_words(middle)
        } else {
            format!("{} to {}", minutes_in_words(low), minutes_in_words(high))
        };
        Self {
            middle,
            percentiles: [low, middle, high],
            formatted: formatted.into(),
        }
    }
}

#[cfg(test)]
mod tests;
