//! Tests of the waiting visitors of children: of silent ones, of those that left, and of ledgers of
//! data centers.

use super::*;

/// Returns a request of a child at a time, with a number for it.
fn at(child: u64, number: u64, time: Timestamp) -> SyncRequest {
    SyncRequest {
        sent_at: time,
        closed_through: time,
        ..request(
            child,
            number,
            if number > 1 {
                u32::try_from(child).unwrap()
            } else {
                0
            },
        )
    }
}

/// Makes a forecast of `count` visitors at START, who all run out after `secs`.
fn until(count: i64, secs: u64) -> WaitingForecast {
    let mut book = crate::waiting::WaitingBook::new(1_000);
    for n in 0..count {
        let ticket = crate::ticket::Ticket {
            visitor: VisitorId([u8::try_from(n).unwrap(); 16]),
            bucket: START,
            last_check_in_at: START,
            accepted_at: None,
            first_seat: None,
            has_missed_turn: false,
            counted_until: None,
            announced: crate::ticket::Announced::default(),
            unseen_loss: None,
            seats: crate::ticket::Seats::default(),
        };
        let interval = DurationMs((secs - 1) * 4_000 / 5);
        book.handle_refresh(&ticket, START, interval, START);
    }
    book.forecast(START)
}

#[test]
fn the_visitors_of_a_silent_child_count_until_they_are_overdue() {
    let mut silent = at(1, 1, START);
    silent.demand.slots = 5;
    silent.waiting = until(9, 6);
    let (ledger, _) = grant(Ledger::new(), &silent, START);
    let mut ledger = ledger;
    for (number, (secs, expected)) in (1..).zip([(0, 9), (5, 9), (6, 0), (7, 0)]) {
        let time = START + DurationMs::from_secs(secs);
        let mut other = at(2, number, time);
        other.generation = (number > 1).then_some(2);
        let (after, reply) = grant(ledger, &other, time);
        assert_eq!(reply.snapshot.waiting, expected, "after {secs} s");
        ledger = after;
        ledger.rebuild_sums();
        assert_eq!(ledger.waiting_total(), expected);
    }
    assert_eq!(ledger.unmet().slots, 0, "nobody waits for its demand");
}

#[test]
fn the_visitors_of_a_child_that_left_count_until_they_are_overdue() {
    let mut gone = at(1, 1, START);
    gone.waiting = until(9, 30);
    gone.is_leaving = true;
    let (ledger, _) = grant(Ledger::new(), &gone, START);
    let after = START + DurationMs::from_secs(25);
    let (ledger, reply) = grant(ledger, &at(2, 1, after), after);
    assert_eq!(reply.snapshot.waiting, 9);
    let mut other = at(2, 2, START + DurationMs::from_secs(33));
    other.generation = Some(2);
    let (ledger, reply) = grant(ledger, &other, other.sent_at);
    assert_eq!(reply.snapshot.waiting, 0);
    assert!(ledger.departed()[0].waiting.forecast.is_empty());
}

#[test]
fn a_visitor_whom_another_child_admitted_is_subtracted() {
    let mut counts = at(1, 1, START);
    counts.waiting = until(3, 30);
    let (ledger, _) = grant(Ledger::new(), &counts, START);
    let mut admits = at(2, 1, START);
    let minus_one = [(START, -1)].into();
    admits.waiting = WaitingForecast::constant(&minus_one, START);
    let (ledger, reply) = grant(ledger, &admits, START);
    assert_eq!(*reply.snapshot.queue, [(START, 2)].into());
    // The one who admits may be alone for a moment.
    let mut left = at(1, 2, START);
    left.generation = Some(1);
    let (_, reply) = grant(ledger, &left, START);
    assert_eq!((reply.snapshot.waiting, reply.snapshot.queue.len()), (0, 0));
}

#[test]
fn a_visitor_passes_from_one_child_to_another_at_the_same_time() {
    let mut first = at(1, 1, START);
    first.waiting = until(4, 3);
    let mut next = at(2, 1, START);
    let mut book = crate::waiting::WaitingBook::new(1_000);
    for n in 0..4 {
        let ticket = crate::ticket::Ticket {
            visitor: VisitorId([n; 16]),
            bucket: START,
            last_check_in_at: START,
            accepted_at: None,
            first_seat: None,
            has_missed_turn: false,
            counted_until: Some(START + DurationMs(3_000)),
            announced: crate::ticket::Announced::default(),
            unseen_loss: None,
            seats: crate::ticket::Seats::default(),
        };
        book.handle_refresh(&ticket, START, DurationMs(4_000), START);
    }
    next.waiting = book.forecast(START);
    let (ledger, _) = grant(Ledger::new(), &first, START);
    let (mut ledger, _) = grant(ledger, &next, START);
    for ms in (0..4_000).step_by(100) {
        let time = START + DurationMs(ms);
        let mut other = at(3, ms + 1, time);
        other.generation = (ms > 0).then_some(3);
        let (after, reply) = grant(ledger, &other, time);
        assert_eq!(reply.snapshot.waiting, 4, "after {ms} ms");
        ledger = after;
    }
}

#[test]
fn another_ledger_of_a_data_center_counts_the_same_visitors() {
    let mut before = at(1, 1, START);
    before.is_of_ledger = true;
    before.waiting = until(9, 30);
    let (ledger, _) = grant(Ledger::new(), &before, START);
    let mut elsewhere = at(3, 1, START);
    elsewhere.data_center = DataCenterId(3);
    elsewhere.is_of_ledger = true;
    elsewhere.waiting = until(2, 30);
    let (ledger, _) = grant(ledger, &elsewhere, START);
    let mut after = at(2, 1, START);
    after.is_of_ledger = true;
    after.waiting = until(8, 30);
    let (_, reply) = grant(ledger, &after, START);
    assert_eq!(reply.snapshot.waiting, 10);
}

#[test]
fn a_late_message_of_an_earlier_ledger_changes_no_count() {
    let mut present = at(2, 1, START + DurationMs(10_000));
    present.is_of_ledger = true;
    present.waiting = until(8, 30);
    let now = present.sent_at;
    let (ledger, _) = grant(Ledger::new(), &present, now);
    let mut late = at(1, 1, START);
    late.is_of_ledger = true;
    late.waiting = until(9, 30);
    // Not by `grant`, which would send it now.
    let (_, reply) = ledger.sync(&late, LeaseTerms::default(), now);
    let Reply::Granted(reply) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(reply.snapshot.waiting, 8);
}

#[test]
fn a_late_message_of_a_child_that_is_forgotten_counts_nobody() {
    let mut present = at(2, 1, START + DurationMs(80_000));
    present.waiting = WaitingForecast::constant(&[(START, 8)].into(), present.sent_at);
    let now = present.sent_at;
    let (ledger, _) = grant(Ledger::new(), &present, now);
    let mut late = at(1, 1, START);
    late.waiting = WaitingForecast::constant(&[(START, 9)].into(), START);
    let (ledger, _) = ledger.sync(&late, LeaseTerms::default(), now);
    assert_eq!(ledger.waiting_total(), 8);
    // A child whose clock is behind counts from its second report on.
    late.number = 2;
    late.generation = Some(ledger.children[&late.child].generation);
    let (ledger, _) = ledger.sync(&late, LeaseTerms::default(), now);
    assert_eq!(ledger.waiting_total(), 17);
}
