//! Is everything said that is known, and nothing that is not?

use anteroom_config::language::Language;
use anteroom_room::decision::WaitRange;
use anteroom_room::time::{DurationMs, Timestamp};

use super::*;
use crate::page::samples;

#[test]
fn no_two_reasons_are_explained_alike_in_any_language() {
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
            assert!(is_new, "{reason:?} says what another says in {language:?}");
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
fn an_unknown_number_is_called_unknown_and_never_zero() {
    let mut view = samples::view(QueueReason::Full);
    view.place.people_ahead = None;
    view.place.wait = None;
    view.admitted_last_minute = None;
    let words = Words::of(&view);
    assert_eq!(words.ahead.as_deref(), Some("Not known yet"));
    assert_eq!(words.wait.as_deref(), Some("Not known yet"));
    assert_eq!(words.moved, None);
    assert_eq!(words.title, "You are in line");
}

#[test]
fn the_title_begins_with_the_number_and_a_known_zero_is_said() {
    let mut view = samples::view(QueueReason::Full);
    assert_eq!(Words::of(&view).title, "412 \u{b7} You are in line");
    view.place.people_ahead = Some(0);
    view.admitted_last_minute = Some(0);
    let words = Words::of(&view);
    assert_eq!(words.title, "0 \u{b7} You are in line");
    assert_eq!(words.ahead.as_deref(), Some("Nobody"));
    assert_eq!(words.moved.as_deref(), Some("Nobody"));
}

#[test]
fn an_estimate_is_a_range_that_starts_like_a_sentence() {
    let mut view = samples::view(QueueReason::NotYourTurn);
    view.place.wait = Some(WaitRange {
        low: DurationMs::from_secs(20),
        middle: DurationMs::from_secs(60),
        high: DurationMs::from_secs(300),
    });
    assert_eq!(Words::of(&view).wait.as_deref(), Some("Up to 5 minutes"));
}

#[test]
fn no_estimate_is_given_while_nobody_is_let_in() {
    for reason in samples::REASONS {
        if matches!(reason, QueueReason::Full | QueueReason::NotYourTurn) {
            continue;
        }
        let view = samples::view(reason);
        assert!(view.place.wait.is_some(), "the sample has an estimate");
        let wait = Words::of(&view).wait;
        let is_honest = wait.as_deref().is_none_or(|w| w.starts_with("Not known"));
        assert!(is_honest, "{reason:?}: {wait:?}");
    }
}

#[test]
fn somebody_who_is_turned_away_is_promised_no_place() {
    let words = Words::of(&samples::view(QueueReason::Rejecting));
    assert_eq!((words.kept, words.order), (None, None));
    assert_eq!((words.ahead, words.waiting), (None, None));
    assert_eq!((words.since, words.moved), (None, None));
}

#[test]
fn a_pause_is_shown_in_every_language_where_it_holds_visitors() {
    for language in Language::ALL {
        for reason in samples::REASONS {
            let mut view = samples::view(reason);
            view.language = language;
            let before = Words::of(&view);
            view.is_paused = true;
            let during = Words::of(&view);
            let is_said = reason == QueueReason::QueueAll;
            assert_eq!(
                before.reason != during.reason,
                is_said,
                "{language:?} {reason:?}"
            );
            assert_eq!(view.reason() == "paused", is_said, "{reason:?}");
            assert_eq!(before.wait, during.wait);
        }
    }
}

#[test]
fn the_message_of_the_operator_is_said_whatever_the_reason() {
    for reason in samples::REASONS {
        let mut view = samples::view(reason);
        assert_eq!(Words::of(&view).message, None);
        view.message = Some("Next news by 10:40");
        let words = Words::of(&view);
        assert_eq!(words.message.as_deref(), Some("Next news by 10:40"));
    }
}

#[test]
fn where_lots_are_drawn_nobody_is_told_a_position() {
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
fn the_countdown_stands_apart_from_the_estimate() {
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
