//! Counters in a store that can only add, request by request.

use super::*;
use crate::sliding_window::SlidingWindow;
use crate::sub_windows::SubWindows;
use crate::testing::{a_minute, at};
use crate::verdict::Outcome;

/// Returns the counters of ten requests a minute, counted in four parts.
fn strict() -> Counters {
    SubWindows::strict(a_minute(10), 4).unwrap().counters()
}

fn judge(added_at: &str, read_at: &str, cost: Cost, counts: &[u32]) -> Verdict {
    let times = AddThenRead {
        added_at: at(added_at),
        read_at: at(read_at),
    };
    strict().decide(times, cost, counts)
}

fn read(added_at: &str, read_at: &str) -> Vec<u64> {
    let times = AddThenRead {
        added_at: at(added_at),
        read_at: at(read_at),
    };
    let now = strict().index_at(at("07:10:00")).0;
    let indexes = strict().to_read(times);
    indexes.map(|index| index.0 + 100 - now).collect()
}

#[test]
fn newer_counters_are_read_only_if_reading_comes_late() {
    assert_eq!(read("07:10:00", "07:10:14.9"), [100, 99, 98, 97, 96]);
    assert_eq!(read("07:10:00", "07:10:15"), [101, 100, 99, 98, 97, 96]);
    assert_eq!(
        read("07:10:00", "08:00:00"),
        [104, 103, 102, 101, 100, 99, 98, 97, 96]
    );
    assert_eq!(read("07:10:00", "07:09:00"), [100, 99, 98, 97, 96]);
    assert_eq!(strict().valid_for(), DurationUs::from_secs(75));
}

#[test]
fn an_added_request_counts_together_with_the_others() {
    let now = "07:10:01";
    let verdict = judge(now, now, Cost::take(3), &[3, 1, 2, 0, 4]);
    assert!(verdict.is_allowed());
    assert_eq!((verdict.remaining, verdict.full_after.secs_ceil()), (0, 74));
    let verdict = judge(now, now, Cost::take(3), &[4, 1, 2, 0, 4]);
    // Without the request itself: 1, 1, 2, 0, 4.
    let retry_after = Some(DurationUs::from_secs(14));
    assert_eq!(verdict.outcome, Outcome::Reject { retry_after });
    assert_eq!(verdict.remaining, 2);
    let verdict = judge(now, now, Cost::take(11), &[11, 1, 2, 0, 4]);
    assert_eq!(verdict.outcome, Outcome::Reject { retry_after: None });
}

#[test]
fn a_peek_gets_the_verdict_of_one_more_request() {
    let now = "07:10:01";
    assert!(judge(now, now, Cost::Peek, &[9]).is_allowed());
    assert!(!judge(now, now, Cost::Peek, &[9, 1]).is_allowed());
    let verdict = judge(now, now, Cost::refund(3), &[7, 1]);
    assert!(verdict.is_allowed());
    assert_eq!(verdict.remaining, 2);
}

#[test]
fn a_request_read_in_the_next_interval_must_fit_there_too() {
    // A node that could not see this request yet added nine in the next interval.
    let (added, read) = ("07:10:14.9", "07:10:15.1");
    assert!(judge(added, read, Cost::ONE, &[9, 1]).is_allowed());
    let verdict = judge(added, read, Cost::take(2), &[9, 2]);
    assert!(!verdict.is_allowed());
    assert_eq!(verdict.remaining, 1);
    // The part that has left the window by then counted when the request was dated.
    assert!(!judge(added, read, Cost::ONE, &[0, 1, 0, 0, 0, 10]).is_allowed());
    assert!(judge(added, read, Cost::ONE, &[0, 1, 0, 0, 0, 9]).is_allowed());
}

#[test]
fn in_the_next_window_the_one_before_counts_in_full() {
    let counters = SlidingWindow::new(a_minute(10)).counters();
    let check = |counts: &[u32], is_admitted| {
        let times = AddThenRead {
            added_at: at("07:10:59.9"),
            read_at: at("07:11:00.1"),
        };
        let verdict = counters.decide(times, Cost::ONE, counts);
        assert_eq!(verdict.is_allowed(), is_admitted, "{counts:?}");
    };
    check(&[4, 6], true);
    check(&[5, 6], false);
    check(&[0, 9, 10], true);
    check(&[0, 10, 10], false);
}
