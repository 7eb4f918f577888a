//! What does a program that waits get to read? The `cfWaitingRoom` object that clients of hosted
//! waiting rooms know, every field of it, and four of our own.
//!
//! When it is sent, and with which status and headers, is the gateway's business.

use anteroom_room::decision::{QueuePosition, QueueReason, WaitRange};
use anteroom_room::rules::QueueingMethod;
use anteroom_room::time::{DurationMs, Timestamp};
use serde::{Deserialize, Serialize};

use anteroom_config::time_text::{minutes, minutes_in_words, rfc3339_millis};
use anteroom_config::words;

/// What a text says that has nothing to say.
const UNAVAILABLE: &str = "unavailable";

/// Stable word for why somebody waits: [`QueueReason::name`], or `paused` where it is a pause that
/// holds everybody.
#[must_use]
pub const fn reason_name(reason: QueueReason, is_paused: bool) -> &'static str {
    match reason {
        QueueReason::QueueAll if is_paused => "paused",
        reason => reason.name(),
    }
}

/// What is known about a visitor who waits, and about the room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueuePositionFacts<'a> {
    /// Where the visitor stands.
    pub place: QueuePosition,
    /// The room's method.
    pub queueing_method: QueueingMethod,
    /// Whether the operator holds everybody.
    pub queue_all: bool,
    /// Whether those who wait for the opening go in by lot.
    pub draw: bool,
    /// Whether it is a pause that holds everybody.
    pub is_paused: bool,
    /// What the operator says.
    pub message: Option<&'a str>,
    /// Room clock.
    pub now: Timestamp,
}

/// The whole body.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct WaitingBody {
    /// Its only member.
    #[serde(rename = "cfWaitingRoom")]
    pub cf_waiting_room: CfWaitingRoom,
}

/// Numbers that are not known are 0 and texts `unavailable`, as clients expect it; only our own
/// fields say `null`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CfWaitingRoom {
    /// Always true: who does not wait gets the origin's answer.
    pub in_waiting_room: bool,
    /// Whether there is an estimate.
    pub wait_time_known: bool,
    /// Whole minutes, rounded up, at least 1 if known; the middle of the estimate.
    pub wait_time: u64,
    /// Minutes within which a quarter is in; only for `random`.
    #[serde(rename = "waitTime25Percentile")]
    pub wait_time_25_percentile: u64,
    /// Minutes within which half are in; only for `random`.
    #[serde(rename = "waitTime50Percentile")]
    pub wait_time_50_percentile: u64,
    /// Minutes within which three quarters are in; only for `random`.
    #[serde(rename = "waitTime75Percentile")]
    pub wait_time_75_percentile: u64,
    /// English; a range for `random`.
    pub wait_time_formatted: String,
    /// Always false: nobody here waits without a place, however long the line is.
    pub queue_is_full: bool,
    /// Whether the operator holds everybody.
    pub queue_all: bool,
    /// RFC 3339 with milliseconds, UTC.
    pub last_updated: String,
    /// When to ask again, in seconds; 0 = asking again is of no use.
    pub refresh_interval_seconds: u64,
    /// `fifo`, `random`, `passthrough` or `reject`.
    pub queueing_method: String,
    /// Whether the method is `fifo`.
    #[serde(rename = "isFIFOQueue")]
    pub is_fifo_queue: bool,
    /// Whether the method is `random`.
    pub is_random_queue: bool,
    /// Whether the method is `passthrough`.
    pub is_passthrough_queue: bool,
    /// Whether the method is `reject`.
    pub is_reject_queue: bool,
    /// Whether the room has not opened yet; an opening has no end, so never afterwards.
    pub is_event_active: bool,
    /// The same.
    pub is_event_prequeueing: bool,
    /// Whole minutes, rounded up, at least 1 while the room has not opened.
    pub time_until_event_start: u64,
    /// English.
    pub time_until_event_start_formatted: String,
    /// Always 0: an opening has no end.
    pub time_until_event_end: u64,
    /// Always `unavailable`.
    pub time_until_event_end_formatted: String,
    /// Whether those who wait for the opening go in by lot.
    pub shuffle_at_event_start: bool,
    /// Always empty: there is no such challenge here.
    pub turnstile: String,
    /// Always false: nobody waits in vain here without being told.
    pub infinite_queue: bool,
    /// Ours: 1 = next; `null` where there is no order, or not yet.
    pub position: Option<u64>,
    /// Ours: `position` less one.
    pub people_ahead: Option<u32>,
    /// Ours: why; see [`reason_name`].
    pub reason: String,
    /// Ours: what the operator says; `null` if that is nothing.
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
        let QueuePositionFacts { place, now, .. } = facts;
        let method = facts.queueing_method;
        let wait = WaitTexts::new(place.wait, method);
        let until_start = match place.reason {
            QueueReason::NotOpenYet { opens_at } => Some(minutes(opens_at.since(now))),
            _ => None,
        };
        Self {
            in_waiting_room: true,
            wait_time_known: place.wait.is_some(),
            wait_time: wait.middle,
            wait_time_25_percentile: wait.percentiles[0],
            wait_time_50_percentile: wait.percentiles[1],
            wait_time_75_percentile: wait.percentiles[2],
            wait_time_formatted: wait.formatted,
            queue_is_full: false,
            queue_all: facts.queue_all,
            last_updated: rfc3339_millis(now),
            refresh_interval_seconds: place.ask_after.map_or(0, DurationMs::secs_ceil),
            queueing_method: words::queueing_method(method).to_owned(),
            is_fifo_queue: method == QueueingMethod::Fifo,
            is_random_queue: method == QueueingMethod::Random,
            is_passthrough_queue: method == QueueingMethod::Passthrough,
            is_reject_queue: method == QueueingMethod::Reject,
            is_event_active: until_start.is_some(),
            is_event_prequeueing: until_start.is_some(),
            time_until_event_start: until_start.unwrap_or(0),
            time_until_event_start_formatted: until_start
                .map_or_else(|| UNAVAILABLE.to_owned(), minutes_in_words),
            time_until_event_end: 0,
            time_until_event_end_formatted: UNAVAILABLE.to_owned(),
            shuffle_at_event_start: until_start.is_some() && facts.draw,
            turnstile: String::new(),
            infinite_queue: false,
            position: place.people_ahead.map(|ahead| u64::from(ahead) + 1),
            people_ahead: place.people_ahead,
            reason: reason_name(place.reason, facts.is_paused).to_owned(),
            message: facts.message.map(str::to_owned),
        }
    }
}

/// The estimate in minutes and words.
struct WaitTexts {
    middle: u64,
    percentiles: [u64; 3],
    formatted: String,
}

impl WaitTexts {
    fn new(wait: Option<WaitRange>, method: QueueingMethod) -> Self {
        let Some(wait) = wait else {
            return Self {
                middle: 0,
                percentiles: [0; 3],
                formatted: UNAVAILABLE.to_owned(),
            };
        };
        let [low, middle, high] = [wait.low, wait.middle, wait.high].map(minutes);
        if method != QueueingMethod::Random {
            return Self {
                middle,
                percentiles: [0; 3],
                formatted: minutes_in_words(middle),
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
            formatted,
        }
    }
}

#[cfg(test)]
mod tests;
