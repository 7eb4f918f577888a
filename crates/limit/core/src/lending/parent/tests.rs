//! What a parent lends, and what it believes of records: one rule at a time.

use super::*;
use crate::fixed_window::FixedWindow;
use crate::gcra::Gcra;
use crate::lending::epoch::{Before, EpochId, StoreIdentity, UNKNOWN_FOR};
use crate::lending::message::RequestId;
use crate::policy::{Policy, State};
use crate::rate::Rate;
use crate::sliding_log::SlidingLog;
use crate::sliding_window::SlidingWindow;
use crate::sub_windows::SubWindows;
use crate::token_bucket::{NEWCOMER_AFTER, TokenBucket};

const ID: RequestId = RequestId {
    incarnation: 1,
    number: 1,
};
const START: TimestampUs = TimestampUs(1_000_000_000);

fn secs(secs: u64) -> DurationUs {
    DurationUs::from_secs(secs)
}

fn a_minute(calls: u32) -> Rate {
    Rate::new(calls, secs(60)).unwrap()
}

/// So many calls a minute, lent for three seconds.
fn log(calls: u32) -> LeasedLimit {
    LeasedLimit::new(Policy::SlidingLog(
        SlidingLog::new(a_minute(calls)).unwrap(),
    ))
    .unwrap()
}

fn gcra(calls: u32, burst: u32) -> LeasedLimit {
    LeasedLimit::with_ttl(
        Policy::Gcra(Gcra::new(a_minute(calls), burst).unwrap()),
        secs(3),
    )
    .unwrap()
}

fn epoch(before: Before) -> Epoch {
    Epoch {
        id: EpochId {
            number: 2,
            random: 1,
        },
        identity: StoreIdentity(1),
        began_at: START,
        before,
    }
}

fn asks(least: u32, wants: u32, most: u32) -> Request {
    Request {
        id: ID,
        least,
        wants,
        most,
    }
}

/// A client, and the epoch in which it is known.
struct Client {
    epoch: Epoch,
    record: Option<Record>,
    forget_after: DurationUs,
}

impl Client {
    fn new(before: Before) -> Self {
        Self {
            epoch: epoch(before),
            record: None,
            forget_after: DurationUs::ZERO,
        }
    }

    fn ask(&mut self, lending: &LeasedLimit, after: DurationUs, request: Request) -> Answer {
        let now = START + after;
        let lent = lend(lending, &self.epoch, self.record.as_ref(), &request, now);
        if let Some(write) = lent.write {
            self.record = Some(write.record);
            self.forget_after = write.forget_after;
        }
        lent.answer
    }

    fn held(&mut self, lending: &LeasedLimit, after: DurationUs, request: Request) -> u32 {
        self.ask(lending, after, request).held
    }
}

#[test]
fn waiting_calls_get_all_and_expected_ones_a_quarter() {
    for (request, held) in [
        (asks(1, 1, 1), 1),
        (asks(1, 1, 10), 10),
        (asks(1, 1, 90), 25),
        (asks(1, 60, 90), 60),
        (asks(1, 160, 190), 100),
        (asks(30, 30, 90), 30),
        (asks(101, 101, 101), 0),
        (asks(0, 0, 0), 0),
    ] {
        let mut client = Client::new(Before::Nothing);
        assert_eq!(
            client.held(&log(100), secs(0), request),
            held,
            "{request:?}"
        );
        assert_eq!(client.record.is_some(), held > 0);
    }
}

#[test]
fn near_the_end_each_call_is_asked_for_by_itself() {
    let mut client = Client::new(Before::Nothing);
    client.ask(&log(100), secs(0), asks(1, 96, 96));
    for left in [3, 2, 1, 0] {
        let answer = client.ask(&log(100), secs(1), asks(1, 1, 50));
        assert_eq!((answer.held, answer.remaining), (1, left));
    }
    let answer = client.ask(&log(100), secs(2), asks(1, 1, 50));
    // A window and a lease after the first.
    assert_eq!((answer.held, answer.retry_after), (0, Some(secs(61))));
    assert_eq!(client.held(&log(100), secs(63), asks(1, 1, 1)), 1);
}

#[test]
fn the_first_call_after_a_loss_counts_as_fully_spent() {
    let mut client = Client::new(Before::Lost);
    let answer = client.ask(&log(100), secs(0), asks(1, 1, 1));
    assert_eq!((answer.held, answer.remaining), (0, 0));
    assert_eq!(answer.retry_after, Some(secs(63)));
    assert_eq!(
        client.held(&log(100), DurationUs(62_999_999), asks(1, 1, 1)),
        0
    );
    assert_eq!(client.held(&log(100), secs(63), asks(1, 100, 100)), 100);
}

#[test]
fn after_a_loss_the_old_leases_window_counts_as_spent() {
    let fixed = LeasedLimit::new(Policy::FixedWindow(FixedWindow::new(a_minute(100)))).unwrap();
    // Windows begin at 960 s and 1,020 s.
    for (began_at, nothing_until) in [(1_000, 1_020), (1_014, 1_020), (1_016, 1_080)] {
        let mut client = Client::new(Before::Lost);
        client.epoch.began_at = TimestampUs(began_at * 1_000_000);
        let after = secs(began_at - 1_000);
        let answer = client.ask(&fixed, after, asks(1, 1, 1));
        let expected = (0, Some(secs(nothing_until - began_at)));
        assert_eq!((answer.held, answer.retry_after), expected);
    }
}

#[test]
fn after_a_loss_a_bucket_fills_up_from_nothing() {
    let mut client = Client::new(Before::Lost);
    let limit = gcra(60, 20);
    assert_eq!(client.held(&limit, secs(0), asks(1, 1, 1)), 0);
    assert_eq!(client.held(&limit, secs(5), asks(1, 9, 9)), 5);
    let bucket = TokenBucket::new(a_minute(60), 20, 20).unwrap();
    let bucket = LeasedLimit::with_ttl(Policy::TokenBucket(bucket), secs(3)).unwrap();
    assert_eq!(
        Client::new(Before::Lost).held(&bucket, secs(5), asks(1, 9, 9)),
        5
    );
}

#[test]
fn a_record_of_another_epoch_is_none() {
    for (before, held) in [(Before::Lost, 0), (Before::Nothing, 100)] {
        let mut client = Client::new(Before::Nothing);
        client.ask(&log(100), secs(0), asks(1, 60, 60));
        client.epoch = epoch(before);
        client.epoch.id.number += 1;
        assert_eq!(client.held(&log(100), secs(1), asks(1, 100, 100)), held);
    }
}

#[test]
fn a_store_found_empty_waits_for_the_length_of_a_lease() {
    let mut client = Client::new(Before::Unknown);
    let answer = client.ask(&log(100), secs(1), asks(1, 1, 1));
    assert_eq!((answer.held, answer.retry_after), (0, Some(secs(4))));
    assert_eq!(client.held(&log(100), UNKNOWN_FOR, asks(1, 1, 1)), 1);
}

#[test]
fn a_lowered_limit_acts_at_once_and_spent_stays_spent() {
    let mut client = Client::new(Before::Nothing);
    client.ask(&log(100), secs(0), asks(1, 60, 60));
    for (calls, left) in [(50, 0), (61, 1), (200, 140)] {
        let answer = client.ask(&log(calls), secs(1), asks(0, 0, 0));
        assert_eq!(answer.remaining, left, "{calls}");
    }
}

#[test]
fn a_state_of_another_window_counts_as_spent_latest() {
    let mut client = Client::new(Before::Nothing);
    let strict = |ttl| {
        let strict = SubWindows::strict(a_minute(100), 60).unwrap();
        LeasedLimit::with_ttl(Policy::SubWindows(strict), ttl).unwrap()
    };
    client.ask(&strict(secs(5)), secs(0), asks(1, 60, 60));
    let remaining = |client: &mut Client, after| {
        let answer = client.ask(&strict(secs(1)), after, asks(0, 0, 0));
        answer.remaining
    };
    assert_eq!(remaining(&mut client, secs(1)), 40);
    // Four seconds later than a lease of one would be over.
    assert_eq!(remaining(&mut client, secs(64)), 40);
    assert_eq!(remaining(&mut client, secs(68)), 100);
}

#[test]
fn a_guessed_counter_of_another_window_counts_as_all() {
    let sliding = |ttl| {
        let sliding = SlidingWindow::new(a_minute(100));
        LeasedLimit::with_ttl(Policy::SlidingWindow(sliding), ttl).unwrap()
    };
    let mut client = Client::new(Before::Nothing);
    client.ask(&sliding(secs(3)), secs(0), asks(1, 1, 1));
    let answer = client.ask(&sliding(secs(1)), secs(1), asks(1, 1, 1));
    // The old leases may run two seconds longer than the new ones.
    assert_eq!((answer.held, answer.retry_after), (0, Some(secs(62))));
    assert_eq!(client.held(&sliding(secs(1)), secs(63), asks(1, 1, 1)), 1);
}

#[test]
fn a_state_of_another_algorithm_counts_as_all() {
    let mut client = Client::new(Before::Nothing);
    client.ask(&log(100), secs(0), asks(1, 1, 1));
    assert_eq!(client.held(&gcra(60, 20), secs(62), asks(1, 1, 1)), 0);
    assert_eq!(client.held(&gcra(60, 20), secs(63), asks(1, 30, 30)), 17);
}

#[test]
fn a_bursts_rest_is_kept_and_refills_at_the_new_rate() {
    let mut client = Client::new(Before::Nothing);
    client.ask(&gcra(60, 23), secs(0), asks(1, 15, 15));
    for (limit, left) in [(gcra(60, 23), 5), (gcra(20, 21), 5), (gcra(600, 90), 5)] {
        let answer = client.ask(&limit, secs(0), asks(0, 0, 0));
        assert_eq!(answer.remaining, left, "{limit:?}");
    }
    let answer = client.ask(&gcra(600, 90), secs(2), asks(0, 0, 0));
    assert_eq!(answer.remaining, 25);
}

#[test]
fn a_clock_set_back_stands_still_or_far_back_begins_anew() {
    let day = secs(86_400);
    let mut client = Client::new(Before::Nothing);
    client.ask(&log(100), day, asks(1, 60, 60));
    let earlier = DurationUs(day.0 - secs(30).0);
    assert_eq!(client.held(&log(100), earlier, asks(1, 100, 100)), 40);
    assert_eq!(client.held(&log(100), secs(0), asks(1, 1, 1)), 0);
    assert_eq!(client.held(&log(100), secs(62), asks(1, 1, 1)), 0);
    assert_eq!(client.held(&log(100), secs(63), asks(1, 100, 100)), 100);
}

#[test]
fn a_record_may_be_forgotten_when_nobody_could_tell_any_more() {
    let initial = TokenBucket::new(a_minute(60), 20, 40).unwrap();
    let initial = LeasedLimit::with_ttl(Policy::TokenBucket(initial), secs(3)).unwrap();
    for (limit, after) in [
        (log(100), secs(63)),
        (gcra(60, 20), secs(63)),
        (initial, NEWCOMER_AFTER),
    ] {
        let mut client = Client::new(Before::Nothing);
        client.ask(&limit, secs(0), asks(1, 15, 15));
        assert_eq!(client.forget_after, after);
        let later = client.forget_after;
        let kept = client.ask(&limit, later, asks(1, 1, 80));
        client.record = None;
        let forgotten = client.ask(&limit, later, asks(1, 1, 80));
        // An initial burst comes back, as after any day of silence.
        assert!(kept == forgotten || after == NEWCOMER_AFTER);
    }
}

#[test]
fn who_is_refused_changes_nothing() {
    let mut client = Client::new(Before::Nothing);
    client.ask(&log(100), secs(0), asks(1, 100, 100));
    let lent = lend(
        &log(100),
        &client.epoch,
        client.record.as_ref(),
        &asks(1, 1, 1),
        START,
    );
    assert_eq!(lent.write, None);
    assert_eq!(client.record.unwrap().state, {
        let mut state = State::New;
        log(100).widened().step(&mut state, START, Cost::take(100));
        state
    });
}
