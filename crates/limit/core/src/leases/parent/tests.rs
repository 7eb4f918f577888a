//! Grants of a parent, and its trust in records: one rule at a time.

use super::*;
use crate::fixed_window::FixedWindow;
use crate::gcra::Gcra;
use crate::leases::epoch::{Before, EpochId, StoreIdentity, UNKNOWN_FOR};
use crate::leases::message::RequestId;
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

fn a_minute(requests: u32) -> Rate {
    Rate::new(requests, secs(60)).unwrap()
}

/// Limit of `requests` a minute, with leases of three seconds.
fn log(requests: u32) -> LeasedLimit {
    LeasedLimit::new(Policy::SlidingLog(
        SlidingLog::new(a_minute(requests)).unwrap(),
    ))
    .unwrap()
}

fn gcra(requests: u32, burst: u32) -> LeasedLimit {
    LeasedLimit::with_ttl(
        Policy::Gcra(Gcra::new(a_minute(requests), burst).unwrap()),
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
        longest_loss: None,
    }
}

fn need(least: u32, waiting: u32, most: u32) -> Request {
    Request {
        id: ID,
        least,
        waiting,
        most,
    }
}

/// Client, and the epoch in which it is known.
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

    fn send(&mut self, limit: &LeasedLimit, after: DurationUs, request: Request) -> LeaseReply {
        let now = START + after;
        let outcome = grant(limit, &self.epoch, self.record.as_ref(), &request, now);
        if let Some(write) = outcome.write {
            self.record = Some(write.record);
            self.forget_after = write.forget_after;
        }
        outcome.reply
    }

    fn held(&mut self, limit: &LeasedLimit, after: DurationUs, request: Request) -> u32 {
        self.send(limit, after, request).granted
    }
}

#[test]
fn waiting_requests_get_all_and_expected_ones_a_quarter() {
    for (request, held) in [
        (need(1, 1, 1), 1),
        (need(1, 1, 10), 10),
        (need(1, 1, 90), 25),
        (need(1, 60, 90), 60),
        (need(1, 160, 190), 100),
        (need(30, 30, 90), 30),
        (need(101, 101, 101), 0),
        (need(0, 0, 0), 0),
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
fn near_the_limit_each_request_needs_its_own_lease() {
    let mut client = Client::new(Before::Nothing);
    client.send(&log(100), secs(0), need(1, 96, 96));
    for left in [3, 2, 1, 0] {
        let answer = client.send(&log(100), secs(1), need(1, 1, 50));
        assert_eq!((answer.granted, answer.remaining), (1, left));
    }
    let answer = client.send(&log(100), secs(2), need(1, 1, 50));
    // A window and a lease after the first.
    assert_eq!((answer.granted, answer.retry_after), (0, Some(secs(61))));
    assert_eq!(client.held(&log(100), secs(63), need(1, 1, 1)), 1);
}

#[test]
fn after_a_loss_a_client_counts_as_fully_spent() {
    let mut client = Client::new(Before::Lost);
    let answer = client.send(&log(100), secs(0), need(1, 1, 1));
    assert_eq!((answer.granted, answer.remaining), (0, 0));
    assert_eq!(answer.retry_after, Some(secs(63)));
    assert_eq!(
        client.held(&log(100), DurationUs(62_999_999), need(1, 1, 1)),
        0
    );
    assert_eq!(client.held(&log(100), secs(63), need(1, 100, 100)), 100);
}

#[test]
fn after_a_loss_the_old_leases_window_counts_as_spent() {
    let fixed = LeasedLimit::new(Policy::FixedWindow(FixedWindow::new(a_minute(100)))).unwrap();
    // Windows begin at 960 s and 1,020 s.
    for (began_at, nothing_until) in [(1_000, 1_020), (1_014, 1_020), (1_016, 1_080)] {
        let mut client = Client::new(Before::Lost);
        client.epoch.began_at = TimestampUs(began_at * 1_000_000);
        let after = secs(began_at - 1_000);
        let answer = client.send(&fixed, after, need(1, 1, 1));
        let expected = (0, Some(secs(nothing_until - began_at)));
        assert_eq!((answer.granted, answer.retry_after), expected);
    }
}

#[test]
fn after_a_loss_a_bucket_fills_up_from_zero() {
    let mut client = Client::new(Before::Lost);
    let limit = gcra(60, 20);
    assert_eq!(client.held(&limit, secs(0), need(1, 1, 1)), 0);
    assert_eq!(client.held(&limit, secs(5), need(1, 9, 9)), 5);
    let bucket = TokenBucket::new(a_minute(60), 20, 20).unwrap();
    let bucket = LeasedLimit::with_ttl(Policy::TokenBucket(bucket), secs(3)).unwrap();
    assert_eq!(
        Client::new(Before::Lost).held(&bucket, secs(5), need(1, 9, 9)),
        5
    );
}

#[test]
fn a_record_of_another_epoch_is_ignored() {
    for (before, held) in [(Before::Lost, 0), (Before::Nothing, 100)] {
        let mut client = Client::new(Before::Nothing);
        client.send(&log(100), secs(0), need(1, 60, 60));
        client.epoch = epoch(before);
        client.epoch.id.number += 1;
        assert_eq!(client.held(&log(100), secs(1), need(1, 100, 100)), held);
    }
}

#[test]
fn a_store_found_empty_waits_for_the_length_of_a_lease() {
    let mut client = Client::new(Before::Unknown);
    let answer = client.send(&log(100), secs(1), need(1, 1, 1));
    assert_eq!((answer.granted, answer.retry_after), (0, Some(secs(4))));
    assert_eq!(client.held(&log(100), UNKNOWN_FOR, need(1, 1, 1)), 1);
}

#[test]
fn a_lowered_limit_acts_at_once() {
    let mut client = Client::new(Before::Nothing);
    client.send(&log(100), secs(0), need(1, 60, 60));
    for (requests, left) in [(50, 0), (61, 1), (200, 140)] {
        let answer = client.send(&log(requests), secs(1), need(0, 0, 0));
        assert_eq!(answer.remaining, left, "{requests}");
    }
}

#[test]
fn counts_of_another_window_expire_as_late_as_they_can() {
    let mut client = Client::new(Before::Nothing);
    let strict = |ttl| {
        let strict = SubWindows::strict(a_minute(100), 60).unwrap();
        LeasedLimit::with_ttl(Policy::SubWindows(strict), ttl).unwrap()
    };
    client.send(&strict(secs(5)), secs(0), need(1, 60, 60));
    let remaining = |client: &mut Client, after| {
        let answer = client.send(&strict(secs(1)), after, need(0, 0, 0));
        answer.remaining
    };
    assert_eq!(remaining(&mut client, secs(1)), 40);
    // Four seconds later than with a lease of one second.
    assert_eq!(remaining(&mut client, secs(64)), 40);
    assert_eq!(remaining(&mut client, secs(68)), 100);
}

#[test]
fn an_estimate_of_another_window_counts_as_fully_spent() {
    let sliding = |ttl| {
        let sliding = SlidingWindow::new(a_minute(100));
        LeasedLimit::with_ttl(Policy::SlidingWindow(sliding), ttl).unwrap()
    };
    let mut client = Client::new(Before::Nothing);
    client.send(&sliding(secs(3)), secs(0), need(1, 1, 1));
    let answer = client.send(&sliding(secs(1)), secs(1), need(1, 1, 1));
    // The old leases may run two seconds longer than the new ones.
    assert_eq!((answer.granted, answer.retry_after), (0, Some(secs(62))));
    assert_eq!(client.held(&sliding(secs(1)), secs(63), need(1, 1, 1)), 1);
}

#[test]
fn a_state_of_another_algorithm_counts_as_fully_spent() {
    let mut client = Client::new(Before::Nothing);
    client.send(&log(100), secs(0), need(1, 1, 1));
    assert_eq!(client.held(&gcra(60, 20), secs(62), need(1, 1, 1)), 0);
    assert_eq!(client.held(&gcra(60, 20), secs(63), need(1, 30, 30)), 17);
}

#[test]
fn the_rest_of_a_burst_refills_at_the_new_rate() {
    let mut client = Client::new(Before::Nothing);
    client.send(&gcra(60, 23), secs(0), need(1, 15, 15));
    for (limit, left) in [(gcra(60, 23), 5), (gcra(20, 21), 5), (gcra(600, 90), 5)] {
        let answer = client.send(&limit, secs(0), need(0, 0, 0));
        assert_eq!(answer.remaining, left, "{limit:?}");
    }
    let answer = client.send(&gcra(600, 90), secs(2), need(0, 0, 0));
    assert_eq!(answer.remaining, 25);
}

#[test]
fn a_clock_set_back_far_makes_the_record_untrusted() {
    let day = secs(86_400);
    let mut client = Client::new(Before::Nothing);
    client.send(&log(100), day, need(1, 60, 60));
    let earlier = DurationUs(day.0 - secs(30).0);
    assert_eq!(client.held(&log(100), earlier, need(1, 100, 100)), 40);
    assert_eq!(client.held(&log(100), secs(0), need(1, 1, 1)), 0);
    assert_eq!(client.held(&log(100), secs(62), need(1, 1, 1)), 0);
    assert_eq!(client.held(&log(100), secs(63), need(1, 100, 100)), 100);
}

#[test]
fn a_record_may_be_forgotten_once_a_new_client_equals_it() {
    let initial = TokenBucket::new(a_minute(60), 20, 40).unwrap();
    let initial = LeasedLimit::with_ttl(Policy::TokenBucket(initial), secs(3)).unwrap();
    for (limit, after) in [
        (log(100), secs(63)),
        (gcra(60, 20), secs(63)),
        (initial, NEWCOMER_AFTER),
    ] {
        let mut client = Client::new(Before::Nothing);
        client.send(&limit, secs(0), need(1, 15, 15));
        assert_eq!(client.forget_after, after);
        let later = client.forget_after;
        let kept = client.send(&limit, later, need(1, 1, 80));
        client.record = None;
        let forgotten = client.send(&limit, later, need(1, 1, 80));
        // An initial burst comes back, as after any day without requests.
        assert!(kept == forgotten || after == NEWCOMER_AFTER);
    }
}

#[test]
fn a_request_without_a_grant_changes_nothing() {
    let mut client = Client::new(Before::Nothing);
    client.send(&log(100), secs(0), need(1, 100, 100));
    let outcome = grant(
        &log(100),
        &client.epoch,
        client.record.as_ref(),
        &need(1, 1, 1),
        START,
    );
    assert_eq!(outcome.write, None);
    assert_eq!(client.record.unwrap().state, {
        let mut state = State::New;
        log(100).widened().step(&mut state, START, Cost::take(100));
        state
    });
}

#[test]
fn a_grant_that_the_store_lacks_is_restored_once() {
    let limit = log(100);
    let mut client = Client::new(Before::Nothing);
    assert_eq!(client.held(&limit, secs(1), need(10, 10, 10)), 10);
    let kept = client.record.clone();
    let mut granted = |after| {
        assert_eq!(client.held(&limit, after, need(7, 7, 7)), 7);
        let as_of = client.record.as_ref().unwrap().as_of;
        Granted { requests: 7, as_of }
    };
    let (first, second) = (granted(secs(2)), granted(secs(3)));
    let newest = client.record.clone();
    let epoch = client.epoch;
    let now = START + secs(10);
    let restore_into = |record: &Option<Record>, granted| {
        restore(&limit, &epoch, record.as_ref(), granted, now).map(|write| write.record)
    };
    // The newest grant has the time of the record: it may be missing.
    assert_eq!(restore_into(&newest, first), None);
    assert!(restore_into(&newest, second).is_some());
    // Two nodes report, in any order, to a store that lacks both grants.
    for order in [[first, second], [second, first]] {
        for (record, left) in [(kept.clone(), 76), (None, 86)] {
            let as_of = record.as_ref().map_or(START, |record| record.as_of);
            let mut record = record;
            for granted in order {
                record = restore_into(&record, granted);
            }
            let reply = grant(&limit, &epoch, record.as_ref(), &need(0, 0, 0), now).reply;
            assert_eq!(reply.remaining, left);
            assert_eq!(record.unwrap().as_of, as_of);
        }
    }
}

#[test]
fn a_grant_that_does_not_matter_any_more_is_not_restored() {
    let limit = log(100);
    let epoch = epoch(Before::Nothing);
    let granted = Granted {
        requests: 7,
        as_of: START + secs(1),
    };
    for (after, is_restored) in [(secs(63), true), (secs(64), false)] {
        let write = restore(&limit, &epoch, None, granted, START + after);
        assert_eq!(write.is_some(), is_restored, "{after}");
    }
    // No more than the client may have is counted.
    let many = Granted {
        requests: u32::MAX,
        ..granted
    };
    let write = restore(&limit, &epoch, None, many, START + secs(1)).unwrap();
    let reply = grant(
        &limit,
        &epoch,
        Some(&write.record),
        &need(0, 0, 0),
        START + secs(1),
    )
    .reply;
    assert_eq!(reply.remaining, 0);
    assert!(write.forget_after >= limit.kept_for());
}

#[test]
fn a_reply_states_how_long_a_rejection_is_uncertain() {
    let limit = log(100);
    for (before, uncertain) in [
        // The longest lease, and a window with a lease.
        (Before::Lost, secs(63)),
        (Before::Unknown, secs(5)),
        (Before::Nothing, DurationUs::ZERO),
    ] {
        let mut client = Client::new(before);
        let reply = client.send(&limit, DurationUs::ZERO, need(1, 1, 1));
        assert_eq!(reply.uncertain_for, uncertain, "{before:?}");
        let reply = client.send(&limit, secs(70), need(1, 1, 1));
        assert_eq!(reply.uncertain_for, DurationUs::ZERO);
    }
}
