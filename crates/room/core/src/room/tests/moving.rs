//! Visitors who are inside by a seat in another data center.

use super::*;

/// A ticket with a seat elsewhere, prolonged a while ago, as whoever is inside there has it.
fn from_elsewhere(now: Timestamp) -> Ticket {
    let mut seats = Seats::default();
    seats.put(Seat {
        data_center: DataCenterId(2),
        ends_at: now + DurationMs(15_000),
        epoch: Epoch(0),
    });
    Ticket {
        visitor: VisitorId([7; 16]),
        bucket: START - DurationMs(60_000),
        last_check_in_at: now - DurationMs(5_000),
        accepted_at: Some(START - DurationMs(60_000)),
        is_provisional: false,
        seats,
    }
}

/// A room of one seat, which is taken until the time that is returned, and somebody who waits.
fn full() -> (Pair, Timestamp, Ticket) {
    let mut pair = Pair::new(Rules {
        session_duration: DurationMs(12_000),
        ..rules(1, 100)
    });
    let inside = pair.admit();
    let (waiting, _) = pair.queue(None);
    let (waiting, _) = pair.queue(Some(waiting));
    let ends_at = inside.seats.ends_at().expect("it has a seat");
    (pair, ends_at, waiting)
}

#[test]
fn the_next_free_seat_goes_to_a_visitor_inside_elsewhere() {
    let (mut pair, ends_at, waiting) = full();
    pair.now = ends_at - DurationMs(2_000);
    let mover = from_elsewhere(pair.now);
    assert_eq!(pair.check_in(mover), CheckIn::Pass);
    pair.wait(2_500);
    pair.sync();
    let (_, place) = pair.queue(Some(waiting));
    assert_eq!(place.reason, QueueReason::Full);
    let renewed = pair.renew(mover);
    assert!(renewed.seats.of(DataCenterId(1)).is_some());
    pair.sync();
    assert_eq!(pair.ledger.inside(), 1);
    assert_eq!(pair.ledger.unmet().later, 0);
}

#[test]
fn a_seat_is_not_kept_for_ever_for_an_absent_visitor() {
    let (mut pair, ends_at, waiting) = full();
    pair.now = ends_at - DurationMs(2_000);
    let mover = from_elsewhere(pair.now);
    assert_eq!(pair.check_in(mover), CheckIn::Pass);
    pair.wait(7_000);
    pair.sync();
    pair.sync();
    assert!(matches!(pair.visit(Some(waiting)), Verdict::Admit(_)));
}

/// What is kept for those who are expected lies at the ledger: a slot that it lends besides is one.
#[test]
fn a_leased_slot_goes_to_the_queue_while_a_mover_is_expected() {
    let mut pair = Pair::new(Rules {
        session_duration: DurationMs(12_000),
        ..rules(2, 100)
    });
    let inside = pair.admit();
    pair.admit();
    let (waiting, _) = pair.queue(None);
    let (waiting, _) = pair.queue(Some(waiting));
    let ends_at = inside.seats.ends_at().expect("it has a seat");
    pair.now = ends_at - DurationMs(2_000);
    let mover = from_elsewhere(pair.now);
    assert_eq!(pair.check_in(mover), CheckIn::Pass);
    pair.wait(2_500);
    let is_admitted = (0..3).any(|_| {
        pair.sync();
        matches!(pair.visit(Some(waiting)), Verdict::Admit(_))
    });
    assert!(is_admitted);
    let renewed = pair.renew(mover);
    assert!(renewed.seats.of(DataCenterId(1)).is_some());
}

/// The answer may come when whoever wanted the seat has been let pass without it.
#[test]
fn a_seat_fetched_for_a_mover_is_kept_for_its_next_request() {
    let (mut pair, ends_at, waiting) = full();
    pair.now = ends_at - DurationMs(200);
    pair.sync();
    let mover = from_elsewhere(pair.now);
    assert_eq!(pair.check_in(mover), CheckIn::Pass);
    pair.wait(400);
    pair.sync();
    assert_eq!(pair.room.lease.held().seats, 1, "it came late");
    for _ in 0..8 {
        pair.wait(120);
        let (_, place) = pair.queue(Some(waiting));
        assert_eq!(place.reason, QueueReason::Full);
        pair.sync();
    }
    let seats = (pair.room.lease.held().seats, pair.ledger.seats_free());
    assert_eq!(seats, (0, 1), "whichever node it asks finds it");
    assert!(pair.renew(mover).seats.of(DataCenterId(1)).is_some());
}
