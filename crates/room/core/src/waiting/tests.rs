//! Tests of counts and positions.

use alloc::vec::Vec;

use super::*;

fn visitor(n: u8) -> VisitorId {
    VisitorId([n; 16])
}

fn refresh(n: u8, rank: u64) -> QueueRequest {
    QueueRequest {
        visitor: visitor(n),
        rank: Timestamp(rank),
        refresh_after: DurationMs(2_000),
    }
}

fn counts(book: &mut WaitingBook, now: u64) -> Vec<(u64, u32)> {
    let counts = book.counts(Timestamp(now));
    counts.iter().map(|(rank, count)| (rank.0, count)).collect()
}

#[test]
fn several_tabs_of_one_visitor_count_once() {
    let mut book = WaitingBook::new(10);
    for now in [10_000, 10_100, 10_200] {
        book.handle_refresh(refresh(1, 9_000), Timestamp(now));
    }
    assert_eq!(counts(&mut book, 10_300), [(9_000, 1)]);
}

#[test]
fn an_overdue_request_releases_the_watermark_and_keeps_its_position() {
    let mut book = WaitingBook::new(10);
    book.handle_refresh(refresh(1, 9_000), Timestamp(10_000));
    assert_eq!(counts(&mut book, 12_999), [(9_000, 1)]);
    assert_eq!(counts(&mut book, 13_000), []);
    assert_eq!(book.people_ahead(Timestamp(9_500), Timestamp(13_000)), 1);
    assert_eq!(book.people_ahead(Timestamp(9_500), Timestamp(15_500)), 0);
}

#[test]
fn a_position_is_all_earlier_ones_and_half_of_the_own_second() {
    let mut book = WaitingBook::new(100);
    for n in 0..10 {
        book.handle_refresh(refresh(n, 1_000), Timestamp(5_000));
    }
    for n in 10..14 {
        book.handle_refresh(refresh(n, 2_000), Timestamp(5_000));
    }
    assert_eq!(book.people_ahead(Timestamp(1_000), Timestamp(5_000)), 5);
    assert_eq!(book.people_ahead(Timestamp(2_000), Timestamp(5_000)), 12);
    assert_eq!(book.people_ahead(Timestamp(3_000), Timestamp(5_000)), 14);
    assert_eq!(book.people_waiting(Timestamp(5_000)), 14);
}

#[test]
fn an_admitted_visitor_no_longer_waits() {
    let mut book = WaitingBook::new(10);
    book.handle_refresh(refresh(1, 1_000), Timestamp(5_000));
    book.handle_departure(visitor(1), Timestamp(1_000), Timestamp(5_001));
    assert_eq!(counts(&mut book, 5_002), []);
    assert_eq!(book.eligible_total(), 0);
}

#[test]
fn inherited_counts_last_until_a_refresh_or_their_end() {
    let mut book = WaitingBook::new(10);
    book.inherit(&[(Timestamp(1_000), 2)].into(), |_| Timestamp(60_000));
    assert_eq!(counts(&mut book, 5_000), [(1_000, 2)]);
    book.handle_refresh(refresh(1, 1_000), Timestamp(5_000));
    assert_eq!(counts(&mut book, 5_001), [(1_000, 2)]);
    book.handle_departure(visitor(2), Timestamp(1_000), Timestamp(5_002));
    assert_eq!(counts(&mut book, 5_003), [(1_000, 1)]);
    book.inherit(&[(Timestamp(1_000), 2)].into(), |_| Timestamp(60_000));
    assert_eq!(counts(&mut book, 60_000), []);
}

#[test]
fn self_inheritance_counts_each_visitor_once_after_the_next_request() {
    let mut book = WaitingBook::new(10);
    for n in 1..=3 {
        book.handle_refresh(refresh(n, 1_000), Timestamp(5_000));
    }
    book.inherit(&[(Timestamp(1_000), 3)].into(), |_| Timestamp(60_000));
    assert_eq!(counts(&mut book, 5_001), [(1_000, 6)]);
    for now in [6_000, 6_100] {
        book.handle_refresh(refresh(1, 1_000), Timestamp(now));
        assert_eq!(counts(&mut book, now), [(1_000, 5)]);
    }
    book.handle_refresh(refresh(2, 1_000), Timestamp(6_200));
    book.handle_departure(visitor(3), Timestamp(1_000), Timestamp(6_300));
    assert_eq!(counts(&mut book, 6_400), [(1_000, 2)]);
}

#[test]
fn nodes_that_come_and_go_do_not_multiply_inheritance() {
    let mut books = [WaitingBook::new(10), WaitingBook::new(10)];
    for (book, n) in books.iter_mut().zip(1..) {
        book.handle_refresh(refresh(n, 1_000), Timestamp(5_000));
    }
    for round in 0..100 {
        let now = Timestamp(5_000 + round * 10);
        let [one, other] = &mut books;
        one.inherit(&other.counts(now), |_| Timestamp(7_000));
        other.inherit(&one.counts(now), |_| now + DurationMs(60_000));
    }
    let [one, other] = &mut books;
    assert!(
        counts(one, 6_000)[0].1 <= 200,
        "not twice as many each time"
    );
    assert!(one.people_ahead(Timestamp(2_000), Timestamp(6_000)) <= 200);
    one.handle_refresh(refresh(1, 1_000), Timestamp(6_500));
    assert_eq!(counts(one, 7_000), [(1_000, 1)], "the first time counts");
    assert_eq!(counts(other, 65_000), [], "and nothing extends it");
}

#[test]
fn an_inheritance_ends_when_all_its_visitors_have_refreshed() {
    let mut book = WaitingBook::new(10);
    book.inherit(&[(Timestamp(1_000), 1)].into(), |_| Timestamp(6_000));
    book.handle_departure(visitor(1), Timestamp(1_000), Timestamp(5_000));
    book.inherit(&[(Timestamp(1_000), 1)].into(), |_| Timestamp(9_000));
    assert_eq!(counts(&mut book, 8_999), [(1_000, 1)]);
    assert_eq!(counts(&mut book, 9_000), []);
}

#[test]
fn of_two_departed_nodes_the_larger_counts() {
    let mut book = WaitingBook::new(10);
    book.inherit(
        &[(Timestamp(1_000), 2), (Timestamp(2_000), 1)].into(),
        |_| Timestamp(60_000),
    );
    book.inherit(
        &[(Timestamp(1_000), 1), (Timestamp(3_000), 4)].into(),
        |_| Timestamp(60_000),
    );
    let expected = [(1_000, 2), (2_000, 1), (3_000, 4)];
    assert_eq!(counts(&mut book, 5_000), expected);
}

#[test]
fn a_full_book_serves_but_does_not_count() {
    let mut book = WaitingBook::new(1);
    book.handle_refresh(refresh(1, 1_000), Timestamp(5_000));
    book.handle_refresh(refresh(2, 1_000), Timestamp(5_000));
    assert_eq!(counts(&mut book, 5_001), [(1_000, 1)]);
}

#[test]
fn visitors_who_do_not_refresh_in_time_delay_nobody() {
    let mut book = WaitingBook::new(10);
    let counts = [(Timestamp(1_000), 3), (Timestamp(9_000), 2)].into();
    // At the front they refresh every other second, far back once a minute.
    let until = |rank| {
        if rank == Timestamp(1_000) {
            3_000
        } else {
            60_000
        }
    };
    book.inherit(&counts, |rank| Timestamp(until(rank)));
    assert_eq!(book.counts(Timestamp(2_999)).total(), 5);
    let left: Vec<_> = book.counts(Timestamp(3_000)).iter().collect();
    assert_eq!(left, [(Timestamp(9_000), 2)]);
    assert!(book.counts(Timestamp(60_000)).is_empty());
}
