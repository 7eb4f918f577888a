//! Every state that a waiting page can have, with a visitor that does not exist.
//!
//! A registry: `anteroom check` renders templates in each of them, and tests look at each of them.
//! A new state is a name here and its facts.

use std::sync::LazyLock;

use anteroom_config::PageConfig;
use anteroom_config::language::Language;
use anteroom_room::queue_position::{Loss, QueuePosition, QueueReason, Rise, WaitRange};
use anteroom_room::rules::{QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::visitor_code::VisitorCode;

use crate::page::view::WaitingView;

/// Time of all states: Saturday, 1 August 2026, 09:41:48 UTC.
pub const NOW: Timestamp = Timestamp(1_785_578_400_000 - 1_092_000);

/// Names of all states, which are names of rooms too.
pub const NAMES: [&str; 27] = [
    "full",
    "your-turn-soon",
    "unknown",
    "lot",
    "draw",
    "queue-all",
    "paused",
    "early",
    "early-unknown",
    "rejecting",
    "closed",
    "store-away",
    "recovering",
    "recovering-unknown",
    "origin-down",
    AFTER_POST,
    "message",
    "counting",
    "lowered",
    "slower",
    "earlier",
    "near",
    "branded",
    "lost-session",
    "lost-position",
    "lost-turn",
    "revoked",
];

/// Look of the room `branded`.
static BRANDED: LazyLock<PageConfig> = LazyLock::new(|| PageConfig {
    title: Some("Nordlys Festival 2027".to_owned()),
    noun: Some("shop".to_owned()),
    help: Some("/help".to_owned()),
    imprint: Some("/imprint".to_owned()),
    facts: vec![
        "One order can hold up to 6 tickets.".to_owned(),
        "Have the names of everyone in your group ready.".to_owned(),
    ],
    ..PageConfig::default()
});

/// Returns a visitor in a state, in a queue of 1,204 where the state says nothing else.
#[must_use]
pub fn view(state: &'static str, language: Language) -> WaitingView<'static> {
    view_with_wait(state, language, None)
}

/// Returns the same visitor with another wait, if the state has one.
#[must_use]
pub fn view_with_wait(
    state: &'static str,
    language: Language,
    wait: Option<WaitRange>,
) -> WaitingView<'static> {
    let reason = reason(state);
    let is_known = state != "unknown";
    let [low, middle, high] = match state {
        "near" => [20, 30, 50],
        _ => [600, 840, 1_200],
    };
    let usual = WaitRange {
        low: DurationMs::from_secs(low),
        middle: DurationMs::from_secs(middle),
        high: DurationMs::from_secs(high),
    };
    let position = QueuePosition {
        people_ahead: is_known.then_some(if state == "near" { 2 } else { 412 }),
        people_waiting: 1_204,
        wait: is_known.then_some(wait.unwrap_or(usual)),
        is_counted: state != "counting",
        rise: match state {
            "lowered" => Some(Rise::LimitLowered),
            "slower" => Some(Rise::Slower),
            "earlier" => Some(Rise::EarlierVisitors),
            _ => None,
        },
        loss: loss(state),
        refresh_after: (reason != QueueReason::Rejecting).then_some(DurationMs::from_secs(60)),
        ..QueuePosition::unknown(reason, NOW - DurationMs::from_secs(95))
    };
    let rules = Rules {
        queueing_method: match state {
            "lot" => QueueingMethod::Random,
            "rejecting" | "closed" => QueueingMethod::Reject,
            _ => QueueingMethod::Fifo,
        },
        queue_all: state == "queue-all",
        draw: state == "draw",
        ..Rules::default()
    };
    let message = message(state);
    WaitingView {
        host: "shop.example.org",
        reference: Some(VisitorCode([0x3f, 0x9a, 0x12, 0xc4])),
        page: (state == "branded").then_some(&*BRANDED),
        language,
        admitted_last_minute: is_known.then_some(38),
        is_paused: state == "paused",
        message,
        message_at: message.map(|_| NOW - DurationMs::from_secs(600)),
        ..WaitingView::new(state, &rules, position, NOW)
    }
}

/// Name of the state after a form that was not sent.
pub const AFTER_POST: &str = "after-post";

fn loss(state: &str) -> Option<Loss> {
    let ended_at = NOW - DurationMs::from_secs(60);
    Some(match state {
        "lost-session" => Loss::Session {
            ended_at,
            was_idle: true,
        },
        "lost-position" => Loss::Position {
            last_request_at: ended_at - DurationMs::from_secs(300),
            ended_at,
        },
        "lost-turn" => Loss::Turn {
            ended_at,
            is_near_front: true,
        },
        "revoked" => Loss::Revoked,
        _ => return None,
    })
}

fn reason(state: &str) -> QueueReason {
    let opening = NOW + DurationMs::from_secs(1_092);
    match state {
        "your-turn-soon" | "lot" => QueueReason::NotYourTurn,
        "queue-all" | "paused" => QueueReason::QueueAll,
        "early" | "draw" => QueueReason::NotOpenYet { opens_at: opening },
        "early-unknown" => QueueReason::NotOpenYet {
            opens_at: Timestamp::NEVER,
        },
        "rejecting" | "closed" => QueueReason::Rejecting,
        "store-away" => QueueReason::StoreUnavailable,
        "recovering" => QueueReason::Recovering {
            reopens_at: opening,
        },
        "recovering-unknown" => QueueReason::Recovering {
            reopens_at: Timestamp::NEVER,
        },
        "origin-down" => QueueReason::OriginDown,
        _ => QueueReason::Full,
    }
}

fn message(state: &str) -> Option<&'static str> {
    match state {
        "closed" => Some("All tickets are gone."),
        "message" | "queue-all" | "paused" => {
            Some("The payment service is being mended. Next news by 10:40.")
        }
        _ => None,
    }
}
