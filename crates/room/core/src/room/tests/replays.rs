//! Tests of replayed tickets, and of sessions that end early.

use super::*;

#[test]
fn six_parallel_requests_with_one_old_ticket_move_its_seat_once() {
    let mut pair = Pair::new(rules(5, 100));
    let ticket = pair.admit();
    pair.wait(100_000);
    let newest = pair.renew(ticket);
    for _ in 0..5 {
        let replayed = pair.renew(ticket);
        assert_eq!(replayed.seats.ends_at(), newest.seats.ends_at());
    }
    pair.wait(220_000);
    pair.sync();
    assert_eq!(pair.ledger.active(), 1, "the first end has passed");
    assert_eq!(pair.room.counters().renewed, 1);
}

#[test]
fn a_shared_waiting_ticket_is_exchanged_for_one_seat() {
    let mut pair = Pair::new(rules(5, 100));
    pair.change_rules(Rules {
        queue_all: true,
        ..rules(5, 100)
    });
    let (waiting, _) = pair.queue(None);
    pair.change_rules(rules(5, 100));
    let mut ends = Vec::new();
    for _ in 0..10 {
        match pair.visit(Some(waiting)) {
            Verdict::Admit(ticket) => ends.push((ticket.seats.ends_at(), ticket.accepted_at)),
            other => panic!("{other:?}"),
        }
    }
    ends.dedup();
    assert_eq!(ends.len(), 1);
    pair.sync();
    assert_eq!(pair.ledger.active(), 1);
}

#[test]
fn a_shared_ticket_of_another_data_center_takes_one_seat_here() {
    let mut pair = Pair::new(rules(5, 100));
    let mut ticket = pair.admit();
    pair.sync();
    let other_seat = Seat {
        data_center: DataCenterId(9),
        ends_at: pair.now + DurationMs(300_000),
        epoch: Epoch(0),
    };
    ticket.visitor = VisitorId([77; 16]);
    ticket.seats = Seats::default();
    ticket.seats.put(other_seat);
    pair.wait(60_000);
    pair.sync();
    for _ in 0..10 {
        let renewed = pair.renew(ticket);
        assert!(renewed.seats.of(DataCenterId(1)).is_some());
    }
    pair.sync();
    assert_eq!(pair.ledger.active(), 2);
}

#[test]
fn a_logout_frees_one_seat_once_and_its_ticket_is_rejected() {
    let mut pair = Pair::new(rules(2, 100));
    let ticket = pair.admit();
    pair.admit();
    assert!(pair.room.handle_revoke(ticket, pair.now));
    assert!(!pair.room.handle_revoke(ticket, pair.now), "replayed");
    assert_eq!(pair.check_in(ticket), CheckIn::Over);
    pair.sync();
    assert!(!pair.room.handle_revoke(ticket, pair.now), "replayed later");
    pair.sync();
    assert_eq!(pair.ledger.active(), 1);
    pair.admit();
    pair.queue(None);
    assert_eq!(pair.check_in(ticket), CheckIn::Over);
}

#[test]
fn near_the_limit_first_seats_are_short_until_the_ticket_returns() {
    let mut pair = Pair::new(Rules {
        seat_needs_cookie: SeatNeedsCookie::Always,
        ..rules(10, 100)
    });
    let ticket = pair.admit();
    assert_eq!(ticket.first_seat, Some(FirstSeat::Newcomer));
    assert!(ticket.seats.ends_at().unwrap() <= START + DurationMs(70_000));
    pair.wait(1_000);
    let full = pair.renew(ticket);
    assert_eq!(full.first_seat, None);
    assert!(full.seats.ends_at().unwrap() >= pair.now + DurationMs(300_000));
}
