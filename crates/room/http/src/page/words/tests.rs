//! Words of all reasons in all languages.

use anteroom_config::language::Language;
use anteroom_room::queue_position::WaitRange;
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
            let is_new = seen.insert(words.reason);
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
    assert_eq!(words.title, "You are in line");
}

#[test]
fn the_title_begins_with_the_number_even_if_it_is_zero() {
    let mut view = samples::view(QueueReason::Full);
    assert_eq!(Words::of(&view).title, "412 \u{b7} You are in line");
    view.position.people_ahead = Some(0);
    view.admitted_last_minute = Some(0);
    let words = Words::of(&view);
    assert_eq!(words.title, "0 \u{b7} You are in line");
    assert_eq!(words.ahead.as_deref(), Some("Nobody"));
    assert_eq!(words.moved.as_deref(), Some("Nobody"));
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
        let is_honest = wait.as_deref().is_none_or(|w| w.starts_with("Not known"));
        assert!(is_honest, "{reason:?}: {wait:?}");
    }
}

#[test]
fn a_rejected_visitor_gets_no_promise_of_a_position() {
    let words = Words::of(&samples::view(QueueReason::Rejecting));
    assert_eq!((words.kept, words.order), (None, None));
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
            assert_eq!(before.wait, during.wait);
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
        assert_eq!(words.title, words.heading);
    }
}

#[test]
fn the_countdown_is_separate_from_the_estimate() {
    let words = Words::of(&samples::view(QueueReason::NotOpenYet {
        opens_at: samples::OPENING,
    }));
    let until = words.until.unwrap();
    assert_eq!(until.moment.text, "2026-08-01 10:00 UTC");
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
