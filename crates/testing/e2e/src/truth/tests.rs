//! Short logs with known findings.

use anteroom_room::time::Timestamp;
use anteroom_testkit::load::{Exchange, NodeAt, NoticedWait};

use super::*;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Returns a notice for a counted visitor at this position, with a range around so many seconds.
fn noticed(position: u64, middle: u64) -> WaitNotice {
    WaitNotice {
        is_moving: true,
        people_ahead: Some(position - 1),
        position: Some(position),
        wait: Some(NoticedWait {
            low: secs(middle - 10),
            middle: secs(middle),
            high: secs(middle + 10),
            minutes: Some(((middle - 10) / 60, (middle + 10).div_ceil(60))),
        }),
        has_reason: false,
    }
}

/// Examines one visitor who gets these notices at these seconds, and when it is admitted.
fn findings(notices: &[(u64, WaitNotice)], admitted_at: Option<u64>) -> TruthFindings {
    let notices = notices.iter();
    let responses = notices.map(|(at, notice)| (*at, RequestOutcome::Queued(*notice)));
    let admission = admitted_at.map(|at| (at, RequestOutcome::Admitted));
    let exchanges = responses.chain(admission).map(|(at, outcome)| Exchange {
        sent_at: secs(at),
        response: Some((secs(at), outcome)),
    });
    let visit = Visit {
        at: NodeAt(0, 0),
        due_at: Duration::ZERO,
        exchanges: exchanges.collect(),
        seat_ends_at: None,
    };
    TruthFindings::of(&NewcomerLog {
        began_at: Timestamp(0),
        ended_at: secs(1_000),
        visits: vec![visit],
    })
}

#[test]
fn a_range_is_right_early_or_late_by_the_admission() {
    let check = |middle, expected: [u64; 3]| {
        let found = findings(&[(10, noticed(5, middle))], Some(110));
        let RangeCounts {
            right, early, late, ..
        } = found.first;
        assert_eq!([right, early, late], expected, "{middle}");
        assert_eq!(found.all, found.first);
    };
    check(90, [1, 0, 0]);
    check(110, [1, 0, 0]);
    check(111, [0, 1, 0]);
    check(89, [0, 0, 1]);
}

#[test]
fn the_first_range_counts_once_and_its_error_is_kept() {
    let found = findings(&[(0, noticed(9, 70)), (50, noticed(4, 50))], Some(100));
    assert_eq!((found.first.late, found.first.count()), (1, 1));
    assert_eq!((found.all.right, found.all.late), (1, 1));
    assert_eq!(found.first_error.quantile(100), secs(30));
    assert_eq!((found.visitors, found.entered, found.responses), (1, 1, 2));
    // "1–2 minutes" holds the admission, "Up to 1 minute" does as well.
    assert_eq!(found.all_sentences.right, 2);
}

#[test]
fn a_sentence_in_whole_minutes_may_be_too_wide() {
    let found = findings(&[(0, noticed(9, 60))], Some(60));
    // 0 to 2 minutes for a minute of wait.
    assert_eq!((found.first.wide, found.first_sentence.wide), (0, 1));
}

#[test]
fn a_visitor_who_is_not_counted_or_stands_still_gets_no_range() {
    let counting = WaitNotice {
        position: None,
        ..noticed(3, 30)
    };
    let closed = WaitNotice {
        is_moving: false,
        wait: None,
        ..noticed(3, 30)
    };
    let unknown = WaitNotice {
        wait: None,
        ..noticed(3, 30)
    };
    let found = findings(&[(0, counting), (5, closed), (9, unknown)], Some(20));
    assert_eq!((found.responses, found.without_range), (1, 1));
    assert_eq!(found.all.count(), 0);
}

#[test]
fn a_position_that_rises_needs_a_reason() {
    let with_reason = WaitNotice {
        has_reason: true,
        ..noticed(9, 30)
    };
    let found = findings(
        &[
            (0, noticed(5, 30)),
            (2, noticed(6, 30)),
            (4, with_reason),
            (6, noticed(8, 30)),
        ],
        None,
    );
    assert_eq!(
        (found.rises_without_reason, found.rises_with_reason),
        (1, 1)
    );
    assert_eq!((found.entered, found.all.count()), (0, 0));
}
