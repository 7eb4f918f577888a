//! Words of all reasons in all languages.

use anteroom_config::language::Language;
use anteroom_config::{PageConfig, PageTexts};
use anteroom_room::queue_position::{Loss, WaitRange};
use anteroom_room::time::{DurationMs, Timestamp};

use super::*;
use crate::page::samples;

#[test]
fn each_reason_has_its_own_explanation_in_every_language() {
    for language in Language::ALL {
        let mut seen = std::collections::BTreeSet::new();
        for reason in samples::REASONS {
            let mut view = samples::view(reason);
            view.language = language;
            let words = Words::of(&view);
            let letters = words.reason.chars().count();
            assert!(
                letters > 12,
                "{reason:?} is hardly explained in {language:?}"
            );
            // Full and not yet one's turn follow each other every few seconds: one sentence.
            let is_new = seen.insert(words.reason) || reason == QueueReason::NotYourTurn;
            assert!(
                is_new,
                "{reason:?} is explained like another in {language:?}"
            );
        }
    }
}

#[test]
fn no_placeholder_is_left_in_any_language() {
    for language in Language::ALL {
        for reason in samples::REASONS {
            let mut view = samples::view(reason);
            view.language = language;
            let words = serde_json::to_string(&Words::of(&view)).unwrap();
            assert!(
                !words.contains("{time}") && !words.contains("{n}"),
                "{words}"
            );
        }
    }
}

#[test]
fn an_unknown_number_is_shown_as_unknown_and_never_as_zero() {
    let mut view = samples::view(QueueReason::Full);
    view.position.people_ahead = None;
    view.position.wait = None;
    view.admitted_last_minute = None;
    let words = Words::of(&view);
    assert_eq!(words.ahead.as_deref(), Some("Not known yet"));
    assert_eq!(words.wait.as_deref(), Some("Not known yet"));
    assert_eq!(words.moved, None);
    assert_eq!(words.title, "You’re in line \u{b7} shop");
    assert_eq!(words.number.as_deref(), Some("Not known yet"));
    assert!(!words.is_big);
}

#[test]
fn the_title_begins_with_the_number_even_if_it_is_zero() {
    let mut view = samples::view(QueueReason::Full);
    assert_eq!(Words::of(&view).title, "413 in line \u{b7} shop");
    view.position.people_ahead = Some(0);
    view.admitted_last_minute = Some(0);
    let words = Words::of(&view);
    assert_eq!(words.title, "1 in line \u{b7} shop");
    assert_eq!(words.ahead.as_deref(), Some("Nobody"));
    let nobody = "Nobody went in during the last minute.";
    assert_eq!(words.moved.as_deref(), Some(nobody));
    view.admitted_last_minute = Some(1);
    let one = "One person went in during the last minute.";
    assert_eq!(Words::of(&view).moved.as_deref(), Some(one));
}

#[test]
fn an_estimate_is_a_range_that_starts_like_a_sentence() {
    let mut view = samples::view(QueueReason::NotYourTurn);
    view.position.wait = Some(WaitRange {
        low: DurationMs::from_secs(20),
        middle: DurationMs::from_secs(60),
        high: DurationMs::from_secs(300),
    });
    assert_eq!(Words::of(&view).wait.as_deref(), Some("Up to 5 minutes"));
}

#[test]
fn there_is_no_estimate_while_nobody_is_admitted() {
    for reason in samples::REASONS {
        if matches!(reason, QueueReason::Full | QueueReason::NotYourTurn) {
            continue;
        }
        let view = samples::view(reason);
        assert!(view.position.wait.is_some(), "the sample has an estimate");
        let wait = Words::of(&view).wait;
        let entry = Words::of(&view).facts.len();
        assert!(entry <= 2, "{reason:?}");
        let is_honest = wait.as_deref().is_none_or(|w| w.starts_with("Not known"));
        assert!(is_honest, "{reason:?}: {wait:?}");
    }
}

#[test]
fn a_rejected_visitor_gets_no_promise_of_a_position() {
    let words = Words::of(&samples::view(QueueReason::Rejecting));
    assert_eq!((words.kept, words.order), (None, None));
    assert_eq!((words.number, words.label), (None, None));
    assert_eq!((words.ahead, words.waiting), (None, None));
    assert_eq!((words.since, words.moved), (None, None));
}

#[test]
fn a_pause_is_shown_in_every_language_if_it_is_the_reason() {
    for language in Language::ALL {
        for reason in samples::REASONS {
            let mut view = samples::view(reason);
            view.language = language;
            let before = Words::of(&view);
            view.is_paused = true;
            let during = Words::of(&view);
            let is_shown = reason == QueueReason::QueueAll;
            assert_eq!(
                before.reason != during.reason,
                is_shown,
                "{language:?} {reason:?}"
            );
            assert_eq!(view.reason() == "paused", is_shown, "{reason:?}");
        }
    }
}

#[test]
fn the_operators_message_is_shown_for_every_reason() {
    for reason in samples::REASONS {
        let mut view = samples::view(reason);
        assert_eq!(Words::of(&view).message, None);
        view.message = Some("Next news by 10:40");
        let words = Words::of(&view);
        assert_eq!(words.message.as_deref(), Some("Next news by 10:40"));
    }
}

#[test]
fn a_queue_in_random_order_shows_no_position() {
    let mut by_lot = samples::view(QueueReason::NotYourTurn);
    by_lot.method = QueueingMethod::Random;
    let mut draw = samples::view(QueueReason::NotOpenYet {
        opens_at: samples::OPENING,
    });
    draw.draw = true;
    for view in [by_lot, draw] {
        let words = Words::of(&view);
        assert_eq!(words.ahead, None);
        assert_eq!(words.waiting.as_deref(), Some("1,204"));
        assert_eq!(words.title, format!("{} \u{b7} shop", words.heading));
    }
}

#[test]
fn the_countdown_is_separate_from_the_estimate() {
    let words = Words::of(&samples::view(QueueReason::NotOpenYet {
        opens_at: samples::OPENING,
    }));
    let until = words.until.unwrap();
    assert_eq!(until.moment.to_string(), "2026-08-01 10:00 UTC");
    assert_eq!(until.left, "19 minutes");
    assert_eq!((words.wait, words.moved), (None, None));
}

#[test]
fn a_time_that_never_comes_is_not_printed() {
    let never = Timestamp::NEVER;
    for reason in [
        QueueReason::NotOpenYet { opens_at: never },
        QueueReason::Recovering { reopens_at: never },
    ] {
        let words = Words::of(&samples::view(reason));
        assert_eq!(words.until, None);
        assert!(words.reason.contains("yet"), "{}", words.reason);
    }
}

#[test]
fn a_pause_does_not_count_in_the_estimate() {
    let mut view = samples::view(QueueReason::QueueAll);
    view.is_paused = true;
    let words = Words::of(&view);
    let wait = "10–20 minutes after entry continues";
    assert_eq!(words.wait.as_deref(), Some(wait));
    assert_eq!(
        (words.heading, words.tag.tag),
        ("Entry is paused", "Paused")
    );
    assert!(
        words
            .facts
            .iter()
            .all(|fact| fact.label != "Expected entry")
    );
    assert!(!words.is_big, "the sentence is the news");
}

#[test]
fn a_queue_that_is_being_counted_has_no_numbers() {
    let mut view = samples::view(QueueReason::Full);
    view.position.is_counted = false;
    let words = Words::of(&view);
    assert_eq!(words.number.as_deref(), Some("Counting…"));
    assert_eq!((words.facts.len(), words.is_big), (0, false));
    assert!(
        words
            .note
            .unwrap()
            .starts_with("Your position and your wait appear")
    );
    assert_eq!(words.title, "You’re in line \u{b7} shop");
}

#[test]
fn each_rise_has_its_own_sentence() {
    let rises = [Rise::LimitLowered, Rise::Slower, Rise::EarlierVisitors];
    let texts: std::collections::BTreeSet<_> = rises
        .map(|rise| {
            let mut view = samples::view(QueueReason::Full);
            view.position.rise = Some(rise);
            Words::of(&view).rise.unwrap()
        })
        .into();
    assert_eq!(texts.len(), 3);
    assert!(
        texts
            .iter()
            .any(|text| text.contains("so that the site stays fast"))
    );
}

#[test]
fn a_loss_is_the_news_and_the_new_position_follows() {
    let at = samples::OPENING;
    let check = |loss: Loss, tag: &str, heading: &str, part: &str| {
        let mut view = samples::view(QueueReason::NotYourTurn);
        view.position.loss = Some(loss);
        let words = Words::of(&view);
        assert_eq!((words.tag.tag, words.heading), (tag, heading));
        let why = words.why.unwrap();
        assert!(why.contains(part), "{why}");
        assert_eq!(words.label, Some("Your new position"));
        assert!(words.is_loss && !words.is_big);
    };
    let session = Loss::Session {
        ended_at: at,
        was_idle: true,
    };
    let part = "for 5 minutes, so your place inside went to the next person at {1785578400000}. \
                You are back in line at the end.";
    check(session, "Session ended", "Your session has ended", part);
    // Of a fixed session, and while nobody can go in, the page claims nothing of that.
    let why = |was_idle, reason| {
        let mut view = samples::view(reason);
        view.position.loss = Some(Loss::Session {
            ended_at: at,
            was_idle,
        });
        Words::of(&view).why.unwrap()
    };
    for why in [
        why(false, QueueReason::Full),
        why(true, QueueReason::QueueAll),
        why(true, QueueReason::StoreUnavailable),
    ] {
        assert_eq!(why, "You are back in line at the end.");
    }
    let position = Loss::Position {
        last_request_at: at,
        ended_at: at,
    };
    check(
        position,
        "Position lost",
        "You were away too long",
        "given up at {1785",
    );
    for (is_near_front, part) in [(true, "one more turn."), (false, "at the end.")] {
        let turn = Loss::Turn {
            ended_at: at,
            is_near_front,
        };
        check(turn, "Turn missed", "Your turn has passed", part);
    }
    check(
        Loss::Revoked,
        "Position ended",
        "Your position was ended",
        "contact help",
    );
}

#[test]
fn almost_there_needs_few_people_ahead_and_a_short_wait() {
    let check = |ahead, high, expected: &str| {
        let mut view = samples::view(QueueReason::NotYourTurn);
        view.position.people_ahead = Some(ahead);
        view.position.wait = Some(WaitRange {
            low: DurationMs(0),
            middle: DurationMs(0),
            high: DurationMs::from_secs(high),
        });
        assert_eq!(Words::of(&view).heading, expected);
    };
    check(2, 60, "Almost there");
    check(2, 600, "You’re in line");
    check(200, 60, "You’re in line");
}

#[test]
fn near_the_front_the_page_promises_to_hold_the_turn() {
    let mut view = samples::view(QueueReason::NotYourTurn);
    view.position.people_ahead = Some(0);
    view.position.wait = Some(WaitRange {
        low: DurationMs(0),
        middle: DurationMs(0),
        high: DurationMs(0),
    });
    view.turn_held_for = DurationMs::from_secs(60);
    let keep = Words::of(&view).keep.unwrap();
    assert!(keep.ends_with("If you look away, your turn is held for 60 seconds."));
}

#[test]
fn before_a_draw_the_page_promises_to_take_part_and_not_five_minutes() {
    let opens_at = samples::OPENING;
    let mut view = samples::view(QueueReason::NotOpenYet { opens_at });
    view.draw = true;
    let words = Words::of(&view);
    assert_eq!(words.steps.len(), 3);
    assert_eq!(words.why, None);
    let keep = words.keep.unwrap();
    assert_eq!(
        keep,
        "Be back in this browser before {1785578400000}, and you still take part."
    );
    view.draw = false;
    let words = Words::of(&view);
    assert_eq!(words.steps.len(), 0);
    assert!(words.keep.unwrap().contains("within 5 minutes"));
    let labels: Vec<_> = words.facts.iter().map(|fact| fact.label).collect();
    assert_eq!(labels, ["Opening time", "Your position in line"]);
}

#[test]
fn a_room_that_rejects_with_a_message_is_closed_and_not_full() {
    for language in Language::ALL {
        let mut view = samples::view(QueueReason::Rejecting);
        view.language = language;
        let full = Words::of(&view);
        view.message = Some("All tickets are gone.");
        let closed = Words::of(&view);
        assert_ne!(closed.heading, full.heading, "{language:?}");
        assert_ne!(closed.tag.tag, full.tag.tag, "{language:?}");
        assert_ne!(closed.why, full.why, "{language:?}");
    }
    let mut view = samples::view(QueueReason::Rejecting);
    let page = PageConfig {
        messages: PageTexts(vec![(Language::English, "Welcome.".to_owned())]),
        ..PageConfig::default()
    };
    view.page = Some(&page);
    let words = Words::of(&view);
    assert_eq!(words.heading, "No room right now", "a message of every day");
    view.message = Some("All tickets are gone.");
    let words = Words::of(&view);
    assert_eq!(
        (words.tag.tag, words.heading),
        ("Closed", "Entry is closed")
    );
    view.position.reason = QueueReason::Full;
    assert_eq!(Words::of(&view).heading, "You’re in line");
}

#[test]
fn a_message_has_its_time_and_an_old_one_its_day() {
    let mut view = samples::view(QueueReason::Full);
    assert_eq!(Words::of(&view).message_at, None, "not known");
    let at = |seconds| samples::OPENING - DurationMs::from_secs(seconds);
    for (seconds, form) in [(3_600, ""), (86_400, "+")] {
        view.message_at = Some(at(seconds));
        let expected = format!("{{{}{form}}}", at(seconds).0);
        assert_eq!(Words::of(&view).message_at.as_deref(), Some(&*expected));
    }
}

#[test]
fn a_noun_is_used_in_its_own_language() {
    let page = PageConfig {
        noun: Some("shop".to_owned()),
        nouns: PageTexts(vec![(Language::Swedish, "butik".to_owned())]),
        ..PageConfig::default()
    };
    let mut view = samples::view(QueueReason::Rejecting);
    view.page = Some(&page);
    let check = |view: &WaitingView<'_>, part: &str| {
        let why = Words::of(view).why.unwrap();
        assert!(why.contains(part), "{part} in {why}");
    };
    check(&view, "The shop is full");
    view.language = Language::Swedish;
    check(&view, "arrangörens butik har");
    view.language = Language::Turkish;
    check(&view, Texts::of(Language::Turkish).noun);
}
