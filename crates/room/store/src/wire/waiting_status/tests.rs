//! Bodies in the format that clients of hosted waiting rooms know.

use anteroom_room::time::DurationMs;
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp(1_596_498_360_000);

fn facts() -> QueuePositionFacts<'static> {
    QueuePositionFacts {
        position: QueuePosition {
            people_ahead: Some(41),
            people_waiting: 90,
            wait: Some(WaitRange {
                low: DurationMs::from_secs(290),
                middle: DurationMs::from_secs(590),
                high: DurationMs::from_secs(890),
            }),
            refresh_after: Some(DurationMs(19_001)),
            ..QueuePosition::unknown(QueueReason::NotYourTurn, NOW)
        },
        queueing_method: QueueingMethod::Fifo,
        queue_all: false,
        draw: false,
        is_paused: false,
        message: None,
        event: None,
        now: NOW,
    }
}

fn body(facts: QueuePositionFacts<'_>) -> Value {
    serde_json::to_value(WaitingBody::from(facts)).unwrap()
}

/// Asserts that the body equals the first example's but for the `differing` members.
fn check(facts: QueuePositionFacts<'_>, differing: &Value) {
    let mut expected = json!({
        "inWaitingRoom": true,
        "waitTimeKnown": true,
        "waitTime": 10,
        "waitTime25Percentile": 0,
        "waitTime50Percentile": 0,
        "waitTime75Percentile": 0,
        "waitTimeFormatted": "10 minutes",
        "queueIsFull": false,
        "queueAll": false,
        "lastUpdated": "2020-08-03T23:46:00.000Z",
        "refreshIntervalSeconds": 20,
        "queueingMethod": "fifo",
        "isFIFOQueue": true,
        "isRandomQueue": false,
        "isPassthroughQueue": false,
        "isRejectQueue": false,
        "isEventActive": false,
        "isEventPrequeueing": false,
        "timeUntilEventStart": 0,
        "timeUntilEventStartFormatted": "unavailable",
        "timeUntilEventEnd": 0,
        "timeUntilEventEndFormatted": "unavailable",
        "shuffleAtEventStart": false,
        "turnstile": "",
        "infiniteQueue": false,
        "position": 42,
        "peopleAhead": 41,
        "reason": "not_your_turn",
        "message": null,
    });
    for (key, value) in differing.as_object().unwrap() {
        let known = expected.get_mut(key).unwrap_or_else(|| panic!("{key}"));
        *known = value.clone();
    }
    assert_eq!(body(facts), json!({ "cfWaitingRoom": expected }));
}

#[test]
fn a_fifo_body_has_one_estimate_and_a_position() {
    check(facts(), &json!({}));
}

#[test]
fn a_random_body_has_quantiles_and_a_range() {
    let mut facts = facts();
    facts.queueing_method = QueueingMethod::Random;
    facts.position.people_ahead = None;
    let differing = json!({
        "waitTime25Percentile": 5,
        "waitTime50Percentile": 10,
        "waitTime75Percentile": 15,
        "waitTimeFormatted": "5 minutes to 15 minutes",
        "queueingMethod": "random",
        "isFIFOQueue": false,
        "isRandomQueue": true,
        "position": null,
        "peopleAhead": null,
    });
    check(facts, &differing);

    let minute = DurationMs::from_secs(60);
    facts.position.wait = Some(WaitRange {
        low: DurationMs(1),
        middle: minute,
        high: minute,
    });
    let body = body(facts);
    assert_eq!(body["cfWaitingRoom"]["waitTimeFormatted"], "1 minute");
}

#[test]
fn the_interval_is_zero_only_if_a_request_is_of_no_use() {
    for (after, seconds) in [(None, 0), (Some(0), 1), (Some(1), 1), (Some(1_001), 2)] {
        let mut facts = facts();
        facts.position.refresh_after = after.map(DurationMs);
        let found = &body(facts)["cfWaitingRoom"]["refreshIntervalSeconds"];
        assert_eq!(found, seconds, "{after:?}");
    }
}

#[test]
fn an_unknown_wait_is_unavailable() {
    let mut facts = facts();
    facts.position.wait = None;
    facts.position.people_ahead = Some(0);
    facts.position.reason = QueueReason::StoreUnavailable;
    let differing = json!({
        "waitTimeKnown": false,
        "waitTime": 0,
        "waitTimeFormatted": "unavailable",
        "position": 1,
        "peopleAhead": 0,
        "reason": "store_unavailable",
    });
    check(facts, &differing);
}

#[test]
fn before_the_opening_the_countdown_is_in_whole_minutes() {
    let mut facts = facts();
    facts.position.wait = None;
    facts.position.people_ahead = None;
    facts.draw = true;
    let opens_in = |millis| QueueReason::NotOpenYet {
        opens_at: NOW + DurationMs(millis),
    };
    facts.position.reason = opens_in(7_440_001);
    let differing = json!({
        "waitTimeKnown": false,
        "waitTime": 0,
        "waitTimeFormatted": "unavailable",
        "isEventActive": true,
        "isEventPrequeueing": true,
        "timeUntilEventStart": 125,
        "timeUntilEventStartFormatted": "2 hours 5 minutes",
        "shuffleAtEventStart": true,
        "position": null,
        "peopleAhead": null,
        "reason": "not_open_yet",
    });
    check(facts, &differing);

    facts.position.reason = opens_in(0);
    let body = body(facts);
    assert_eq!(
        body["cfWaitingRoom"]["timeUntilEventStartFormatted"],
        "1 minute"
    );
}

#[test]
fn a_rejected_visitor_gets_no_refresh_interval() {
    let mut facts = facts();
    facts.queueing_method = QueueingMethod::Reject;
    facts.queue_all = true;
    facts.position.reason = QueueReason::Rejecting;
    facts.position.refresh_after = None;
    let differing = json!({
        "queueAll": true,
        "refreshIntervalSeconds": 0,
        "queueingMethod": "reject",
        "isFIFOQueue": false,
        "isRejectQueue": true,
        "reason": "rejecting",
    });
    check(facts, &differing);
}

#[test]
fn a_pause_differs_from_queue_all_and_has_the_operators_message() {
    let mut facts = facts();
    facts.queue_all = true;
    facts.position.reason = QueueReason::QueueAll;
    facts.message = Some("Back at 10:40");
    for (is_paused, reason) in [(false, "queue_all"), (true, "paused")] {
        facts.is_paused = is_paused;
        let differing = json!({ "queueAll": true, "reason": reason, "message": "Back at 10:40" });
        check(facts, &differing);
    }
    facts.position.reason = QueueReason::StoreUnavailable;
    assert_eq!(body(facts)["cfWaitingRoom"]["reason"], "store_unavailable");
}

#[test]
fn a_position_may_exceed_32_bits() {
    let mut facts = facts();
    facts.position.people_ahead = Some(u32::MAX);
    let body = body(facts);
    assert_eq!(body["cfWaitingRoom"]["position"], 4_294_967_296_u64);
}

#[test]
fn a_body_survives_a_round_trip() {
    let body = WaitingBody::from(facts());
    let text = serde_json::to_string(&body).unwrap();
    assert_eq!(serde_json::from_str::<WaitingBody>(&text).unwrap(), body);
}

#[test]
fn an_event_is_active_in_its_prequeue_and_until_its_end() {
    let mut facts = facts();
    facts.event = Some(ActiveEvent {
        ends_at: Some(NOW + DurationMs(3_600_000)),
        is_shuffled: true,
    });
    let running = json!({
        "isEventActive": true,
        "timeUntilEventEnd": 60,
        "timeUntilEventEndFormatted": "1 hour",
        "shuffleAtEventStart": true,
    });
    check(facts, &running);

    facts.event = Some(ActiveEvent {
        ends_at: None,
        is_shuffled: false,
    });
    check(facts, &json!({"isEventActive": true}));

    facts.position.reason = QueueReason::NotOpenYet {
        opens_at: NOW + DurationMs(600_000),
    };
    let prequeue = json!({
        "isEventActive": true,
        "isEventPrequeueing": true,
        "timeUntilEventStart": 10,
        "timeUntilEventStartFormatted": "10 minutes",
        "reason": "not_open_yet",
    });
    check(facts, &prequeue);
}
