//! Tests of active visitors with a seat in another data center.

use super::*;
use crate::sync_loop::{WAIT_MAX, WAIT_TIMEOUT};

/// Ticket of a visitor who is active in another data center; its seat was extended 5 s ago.
fn from_other_data_center(now: Timestamp) -> Ticket {
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
        first_seat: None,
        has_missed_turn: false,
        counted_until: None,
        announced: crate::ticket::Announced::default(),
        unseen_loss: None,
        seats,
    }
}

/// Makes a full room of one seat with a waiting visitor. Returns the end of the seat, and the
/// waiting ticket.
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
fn the_next_free_seat_goes_to_a_mover() {
    let (mut pair, ends_at, waiting) = full();
    pair.now = ends_at - DurationMs(2_000);
    let mover = from_other_data_center(pair.now);
    assert_eq!(pair.check_in(mover), CheckIn::Pass);
    pair.wait(2_500);
    pair.sync();
    let (_, position) = pair.queue(Some(waiting));
    assert_eq!(position.reason, QueueReason::Full);
    let renewed = pair.renew(mover);
    assert!(renewed.seats.of(DataCenterId(1)).is_some());
    pair.sync();
    assert_eq!(pair.ledger.active(), 1);
    assert_eq!(pair.ledger.unmet().movers_expected, 0);
}

#[test]
fn a_seat_is_not_kept_for_ever_for_an_absent_visitor() {
    let (mut pair, ends_at, waiting) = full();
    pair.now = ends_at - DurationMs(2_000);
    let mover = from_other_data_center(pair.now);
    assert_eq!(pair.check_in(mover), CheckIn::Pass);
    pair.wait(7_000);
    pair.sync();
    pair.sync();
    assert!(matches!(pair.visit(Some(waiting)), Verdict::Admit(_)));
}

/// The ledger keeps the seats of expected visitors: any slot that it grants is for the queue.
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
    let mover = from_other_data_center(pair.now);
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

/// The reply may come after its visitor has passed without the seat.
#[test]
fn a_seat_fetched_for_a_mover_is_kept_for_its_next_request() {
    let (mut pair, ends_at, waiting) = full();
    pair.now = ends_at - DurationMs(200);
    pair.sync();
    let mover = from_other_data_center(pair.now);
    assert_eq!(pair.check_in(mover), CheckIn::Pass);
    pair.wait(400);
    pair.sync();
    assert_eq!(pair.room.lease.balance().seats, 1, "it came late");
    for _ in 0..8 {
        pair.wait(120);
        let (_, position) = pair.queue(Some(waiting));
        assert_eq!(position.reason, QueueReason::Full);
        pair.sync();
    }
    let seats = (pair.room.lease.balance().seats, pair.ledger.seats_free());
    assert_eq!(seats, (0, 1), "any node of the data center finds it");
    assert!(pair.renew(mover).seats.of(DataCenterId(1)).is_some());
}

fn request(ticket: Ticket) -> RequestFlow {
    RequestFlow::new(VisitorArrival {
        ticket: Some(ticket),
        fresh: VisitorId([9; 16]),
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    })
}

/// Makes a room whose ledger has a free seat for a mover. The mover's seat ends at the returned
/// time, and it comes 86 ms before.
fn with_seat_for_mover() -> (Pair, Ticket, RequestFlow, Timestamp) {
    let (mut pair, ends_at, _) = full();
    pair.now = ends_at - DurationMs(2_000);
    let mut mover = from_other_data_center(pair.now);
    let mover_ends_at = ends_at + DurationMs(600);
    mover.seats.put(Seat {
        data_center: DataCenterId(2),
        ends_at: mover_ends_at,
        epoch: Epoch(0),
    });
    assert_eq!(pair.check_in(mover), CheckIn::Pass);
    pair.wait(2_400);
    pair.sync();
    pair.sync();
    assert_eq!(pair.ledger.seats_free(), 1);
    pair.now = mover_ends_at - DurationMs(86);
    let mut flow = request(mover);
    let step = flow.decide(&mut pair.room, pair.now);
    assert_eq!(step, Step::SyncWithParent);
    (pair, mover, flow, mover_ends_at)
}

/// Otherwise it would be queued behind visitors who came later.
#[test]
fn a_ticket_that_ends_while_its_visitor_waits_for_a_seat_gets_that_seat() {
    let (mut pair, mover, mut flow, mover_ends_at) = with_seat_for_mover();
    pair.now = mover_ends_at + DurationMs(63);
    pair.sync();
    assert_eq!(flow.decide(&mut pair.room, pair.now), Step::NotActive);
    let Step::Pass { ticket, .. } = flow.decide(&mut pair.room, pair.now) else {
        panic!("it is queued");
    };
    assert_eq!(ticket.accepted_at, mover.accepted_at);
    assert!(ticket.seats.of(DataCenterId(1)).is_some());
    pair.sync();
    assert_eq!(pair.ledger.active(), 1);
}

#[test]
fn a_ticket_that_ended_earlier_gets_no_seat() {
    let (mut pair, mover, mut late, mover_ends_at) = with_seat_for_mover();
    pair.now = mover_ends_at + DurationMs(63);
    pair.sync();
    let mut new_request = request(mover);
    let step = new_request.decide(&mut pair.room, pair.now);
    assert_eq!(step, Step::NotActive, "it did not wait");
    let is_late = mover_ends_at + WAIT_TIMEOUT + WAIT_MAX;
    assert_eq!(late.decide(&mut pair.room, is_late), Step::NotActive);
    let step = late.decide(&mut pair.room, is_late);
    assert!(!matches!(step, Step::Pass { .. }), "{step:?}");
}

/// A node that paces its syncs may have none within the short wait of an active visitor.
#[test]
fn a_visitor_who_would_lose_its_session_waits_for_the_next_reply() {
    let (mut pair, mover, mut flow, mover_ends_at) = with_seat_for_mover();
    pair.now = mover_ends_at + DurationMs(160);
    flow.set_may_sync(false);
    assert_eq!(flow.decide(&mut pair.room, pair.now), Step::NotActive);
    assert_eq!(flow.decide(&mut pair.room, pair.now), Step::SyncWithParent);
    pair.wait(90);
    pair.sync();
    let Step::Pass { ticket, .. } = flow.decide(&mut pair.room, pair.now) else {
        panic!("it is queued");
    };
    assert_eq!(ticket.visitor, mover.visitor);
    assert!(ticket.seats.of(DataCenterId(1)).is_some());
}
