//! Tests of who counts a visitor, and until when.

mod sequences;

use alloc::vec::Vec;

use super::*;
use crate::ticket::{Announced, Seats};

const RANK: Timestamp = Timestamp(9_000);

/// Returns the ticket of a visitor that nobody counts yet.
fn ticket(n: u8) -> Ticket {
    Ticket {
        visitor: VisitorId([n; 16]),
        bucket: RANK,
        last_check_in_at: RANK,
        accepted_at: None,
        first_seat: None,
        has_missed_turn: false,
        counted_until: None,
        announced: Announced::default(),
        unseen_loss: None,
        seats: Seats::default(),
    }
}

/// Brings a ticket to a node, which says two seconds. Returns the new ticket.
fn refresh(book: &mut WaitingBook, ticket: Ticket, now: u64) -> Ticket {
    refresh_after(book, ticket, 2_000, now)
}

fn refresh_after(book: &mut WaitingBook, ticket: Ticket, interval: u64, now: u64) -> Ticket {
    let until = book.handle_refresh(&ticket, RANK, DurationMs(interval), Timestamp(now));
    Ticket {
        last_check_in_at: Timestamp(now),
        counted_until: Some(until),
        ..ticket
    }
}

fn total(book: &mut WaitingBook, now: u64) -> i64 {
    book.counts(Timestamp(now)).total()
}

fn totals<const N: usize>(books: &mut [WaitingBook; N], now: u64) -> i64 {
    books.iter_mut().map(|book| total(book, now)).sum()
}

#[test]
fn a_visitor_counts_until_its_next_refresh_is_overdue() {
    let mut book = WaitingBook::new(10);
    let ticket = refresh(&mut book, ticket(1), 10_000);
    assert_eq!(ticket.counted_until, Some(Timestamp(13_500)));
    assert_eq!((total(&mut book, 13_499), total(&mut book, 13_500)), (1, 0));
    assert!(book.is_empty());
}

/// The report of its next request comes up to a second later.
#[test]
fn a_visitor_who_asks_again_soon_counts_for_longer_than_a_period_of_reports() {
    let mut book = WaitingBook::new(10);
    let ticket = refresh_after(&mut book, ticket(1), 100, 10_000);
    assert_eq!(ticket.counted_until, Some(Timestamp(12_500)));
}

#[test]
fn another_node_counts_a_visitor_from_the_end_of_its_count_on() {
    let mut books = [(); 3].map(|()| WaitingBook::new(10));
    let mut ticket = ticket(1);
    for step in 0..200u64 {
        let now = 10_000 + step * 700;
        ticket = refresh(&mut books[(step * 7 % 5 % 3) as usize], ticket, now);
        for ms in [0, 300, 699] {
            assert_eq!(totals(&mut books, now + ms), 1, "step {step}");
        }
    }
    let end = ticket.counted_until.unwrap().0;
    assert_eq!(
        (totals(&mut books, end - 1), totals(&mut books, end)),
        (1, 0)
    );
}

#[test]
fn several_tabs_of_one_visitor_count_once() {
    let mut book = WaitingBook::new(10);
    for now in [10_000, 10_100, 10_200] {
        refresh(&mut book, ticket(1), now);
        assert_eq!(total(&mut book, now), 1);
    }
    assert_eq!((total(&mut book, 13_999), total(&mut book, 14_000)), (1, 0));
}

#[test]
fn a_ticket_that_is_replayed_counts_once_at_a_node_for_one_interval() {
    let mut books = [(); 3].map(|()| WaitingBook::new(10));
    let old = refresh(&mut books[0], ticket(1), 10_000);
    for now in (10_100..13_000).step_by(100) {
        for book in &mut books {
            refresh(book, old, now);
        }
    }
    assert_eq!(
        totals(&mut books, 13_000),
        1,
        "each appends behind the first count"
    );
    let most = (13_000..20_000)
        .step_by(250)
        .map(|now| totals(&mut books, now));
    assert!(most.max() <= Some(3), "one for each node");
    assert_eq!(totals(&mut books, 17_000), 0);
}

#[test]
fn an_admitted_visitor_is_subtracted_wherever_it_is_counted() {
    let mut books = [WaitingBook::new(10), WaitingBook::new(10)];
    let ticket = refresh(&mut books[0], ticket(1), 10_000);
    let [_, other] = &mut books;
    assert!(other.handle_departure(&ticket, RANK, Timestamp(11_000)));
    let of_both = books.each_mut().map(|book| total(book, 11_000));
    assert_eq!(of_both, [1, -1]);
    assert_eq!(books.each_mut().map(|book| total(book, 13_500)), [0, 0]);
}

#[test]
fn a_ticket_that_was_admitted_is_subtracted_once_at_a_node() {
    let mut book = WaitingBook::new(10);
    let ticket = refresh(&mut book, ticket(1), 10_000);
    assert!(book.handle_departure(&ticket, RANK, Timestamp(11_000)));
    assert!(!book.handle_departure(&ticket, RANK, Timestamp(11_500)));
    assert_eq!(total(&mut book, 11_500), 0);
    // Its copy waits again.
    refresh(&mut book, ticket, 12_000);
    assert_eq!((total(&mut book, 12_000), total(&mut book, 15_499)), (1, 1));
}

#[test]
fn a_visitor_whom_nobody_counts_is_not_subtracted() {
    let mut book = WaitingBook::new(10);
    assert!(!book.handle_departure(&ticket(1), RANK, Timestamp(10_000)));
    let late = refresh(&mut book, ticket(2), 10_000);
    assert!(!book.handle_departure(&late, RANK, Timestamp(13_500)));
    assert_eq!(total(&mut book, 13_500), 0);
}

#[test]
fn a_count_that_no_node_can_have_written_does_not_hold() {
    let now = 10_000;
    let written = |ahead: u64| Ticket {
        counted_until: Some(Timestamp(now + ahead)),
        ..ticket(1)
    };
    let counted_now = |ticket| {
        let mut book = WaitingBook::new(10);
        refresh(&mut book, ticket, now);
        total(&mut book, now)
    };
    assert_eq!(counted_now(written(81_000)), 0, "another node counts it");
    assert_eq!(counted_now(written(81_500)), 1);
    assert_eq!(counted_now(written(u64::MAX - now)), 1);
}

#[test]
fn the_longest_interval_is_counted_and_not_longer() {
    let mut book = WaitingBook::new(10);
    let ticket = refresh_after(&mut book, ticket(1), 61_000, 10_000);
    assert_eq!(ticket.counted_until, Some(Timestamp(88_000)));
    let absurd = refresh_after(&mut book, ticket, u64::MAX, 10_001);
    assert!(absurd.counted_until <= Some(Timestamp(10_001) + COUNTED_MAX));
}

#[test]
fn visitors_beyond_the_capacity_are_counted_by_their_tickets() {
    let mut book = WaitingBook::new(1);
    let tickets = [1, 2, 3].map(|n| refresh(&mut book, ticket(n), 10_000));
    assert_eq!(total(&mut book, 10_000), 3);
    for ticket in tickets {
        refresh(&mut book, ticket, 12_000);
    }
    assert_eq!((total(&mut book, 12_000), total(&mut book, 15_499)), (3, 3));
    assert_eq!(total(&mut book, 15_500), 0);
}

#[test]
fn another_order_of_the_queue_counts_all_anew() {
    let mut book = WaitingBook::new(10);
    let before = refresh(&mut book, ticket(1), 10_000);
    book.clear(Timestamp(11_000));
    assert_eq!(total(&mut book, 11_000), 0);
    let after = refresh(&mut book, before, 11_500);
    assert_eq!(total(&mut book, 11_500), 1);
    refresh(&mut book, after, 12_000);
    assert_eq!(total(&mut book, 12_000), 1);
}

#[test]
fn a_report_says_who_counts_if_nobody_refreshes() {
    let mut book = WaitingBook::new(10);
    for (n, interval) in [(1, 2_000), (2, 10_000), (3, 60_000)] {
        refresh_after(&mut book, ticket(n), interval, 10_000);
    }
    let forecast = book.forecast(Timestamp(10_000));
    let at = |now: u64| forecast.counts_at(Timestamp(now)).total();
    let found: Vec<_> = [10_000, 13_499, 13_500, 23_000, 25_000, 83_900, 86_000]
        .map(at)
        .into();
    assert_eq!(found, [3, 3, 2, 2, 1, 1, 0]);
}

#[test]
fn a_visitor_who_leaves_is_not_counted_any_more() {
    let mut book = WaitingBook::new(10);
    let first = refresh_after(&mut book, ticket(1), 60_000, 10_000);
    refresh_after(&mut book, ticket(2), 2_000, 10_000);
    assert!(book.handle_leave(&first, RANK, Timestamp(11_200)));
    assert_eq!(total(&mut book, 11_200), 1);
    assert!(book.has_left(first.visitor, Timestamp(11_200)));
    let forecast = book.forecast(Timestamp(11_200));
    assert_eq!(forecast.counts_at(Timestamp(11_200)).total(), 1);
    assert_eq!(total(&mut book, 13_500), 0);
    assert!(book.is_empty());
}

#[test]
fn a_visitor_leaves_once_whatever_ticket_it_brings() {
    let mut book = WaitingBook::new(10);
    let old = refresh(&mut book, ticket(1), 10_000);
    let newest = refresh(&mut book, old, 12_000);
    refresh(&mut book, ticket(2), 12_000);
    assert!(book.handle_leave(&old, RANK, Timestamp(12_500)));
    for copy in [newest, old, ticket(1)] {
        assert!(!book.handle_leave(&copy, RANK, Timestamp(12_600)));
        assert_eq!(total(&mut book, 12_600), 1);
    }
}

#[test]
fn a_node_subtracts_only_what_it_counts() {
    let mut books = [WaitingBook::new(10), WaitingBook::new(10)];
    let old = refresh(&mut books[0], ticket(1), 10_000);
    let newest = refresh(&mut books[1], old, 12_000);
    // The first node counts it until 13.5 s, the second one from then on.
    assert!(!books[1].handle_leave(&newest, RANK, Timestamp(12_100)));
    assert_eq!(totals(&mut books, 12_100), 1);
    assert!(books[0].handle_leave(&newest, RANK, Timestamp(12_200)));
    assert_eq!(totals(&mut books, 12_200), 0);
    for book in &mut books {
        assert!(!book.handle_leave(&newest, RANK, Timestamp(12_300)));
    }
    assert!(books.iter().all(WaitingBook::is_empty));
}

#[test]
fn a_visitor_whom_another_node_counts_runs_out_there() {
    let mut books = [WaitingBook::new(10), WaitingBook::new(10)];
    let ticket = refresh(&mut books[0], ticket(1), 10_000);
    assert!(!books[1].handle_leave(&ticket, RANK, Timestamp(10_100)));
    assert!(books[1].has_left(ticket.visitor, Timestamp(10_100)));
    assert_eq!(
        (total(&mut books[0], 13_499), total(&mut books[0], 13_500)),
        (1, 0)
    );
}

#[test]
fn an_admitted_visitor_cannot_leave_the_queue_again() {
    let mut book = WaitingBook::new(10);
    let ticket = refresh(&mut book, ticket(1), 10_000);
    assert!(book.handle_departure(&ticket, RANK, Timestamp(10_500)));
    assert!(!book.handle_leave(&ticket, RANK, Timestamp(10_600)));
    assert_eq!(total(&mut book, 10_600), 0);
}

#[test]
fn a_node_remembers_for_some_seconds_who_left() {
    let mut book = WaitingBook::new(10);
    let ticket = refresh(&mut book, ticket(1), 10_000);
    book.handle_leave(&ticket, RANK, Timestamp(10_500));
    let end = Timestamp(10_500) + LEAVING;
    assert!(book.has_left(ticket.visitor, end - DurationMs(1)));
    assert!(!book.has_left(ticket.visitor, end));
}
